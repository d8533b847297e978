"""The scenarios that need connectors: Kafka and Delta sources.

Arguments: the jars, comma-separated; Kafka's address; the two topics to write and read,
the first with two partitions.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import StreamingQueryException
from scripts.golden.catalogue import written
from scripts.golden.drive import make, testify
from scripts.golden.place import Place
from scripts.golden.scenario import Run, Scenario
from scripts.golden.session import session
from scripts.golden.testimony import batch_of, progress_of

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
DIES_IN = 2


def main(jars: str, bootstrap: str, *topics: str) -> None:
    spark = session({"spark.jars": jars, **DELTA})
    print(f"{spark.version}  kafka", flush=True)
    make(spark, kafka(spark, bootstrap, list(topics)))
    print(f"{spark.version}  delta", flush=True)
    make(spark, delta(spark))
    print(f"{spark.version}  delta-mid-version", flush=True)
    make_delta_mid_version(spark)
    spark.stop()


def kafka(spark: SparkSession, bootstrap: str, topics: list[str]) -> Scenario:
    def produce(topic: str, *partitions: int) -> None:
        """One record for each of the partitions named, in that order."""
        rows = [(f"r{number}", partition) for number, partition in enumerate(partitions)]
        frame = spark.createDataFrame(rows, "value STRING, partition INT").coalesce(1)
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        writer.option("topic", topic).save()

    def produce_first() -> None:
        produce(topics[0], 0, 0, 0, 1, 1)
        produce(topics[1], 0, 0)

    def build(spark: SparkSession, place: Place) -> Any:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        reader = reader.option("subscribe", ",".join(topics)).option("maxOffsetsPerTrigger", 3)
        records = reader.option("startingOffsets", "earliest").load()
        return records.select("value").writeStream.format("noop")

    return Scenario(
        "kafka",
        "two topics, one of two partitions; three records a batch",
        build,
        (Run(wait=produce_first),),
        Run(wait=lambda: produce(topics[0], 1)),
    )


def delta(spark: SparkSession) -> Scenario:
    """Read to the end: the snapshot first, then the version after it."""
    table = Place("delta").folder / "table"

    def build(spark: SparkSession, place: Place) -> Any:
        rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(table))
        return rows.writeStream.format("noop")

    return Scenario(
        "delta",
        "a Delta source: two files of the initial snapshot, then a later version",
        build,
        (
            Run(wait=lambda: append_version(spark, Place("delta"), files=2)),
            Run(wait=lambda: append_version(spark, Place("delta"), files=1)),
        ),
        Run(wait=lambda: append_version(spark, Place("delta"), files=1)),
    )


def append_version(spark: SparkSession, place: Place, files: int) -> None:
    rows = spark.range(files * 3).repartition(files)
    rows.write.format("delta").mode("append").save(str(place.folder / "table"))


def make_delta_mid_version(spark: SparkSession) -> None:
    """Version 1 has four files; the query dies when it has taken one of them."""
    place = Place("delta-mid-version")
    place.clear()
    append_version(spark, place, files=1)
    append_version(spark, place, files=4)

    def source(spark: SparkSession, place: Place) -> DataFrame:
        reader = spark.readStream.format("delta").option("startingVersion", 0)
        return reader.option("maxFilesPerTrigger", 1).load(str(place.folder / "table"))

    def die(frame: DataFrame, batch: int) -> None:
        if batch == DIES_IN:
            raise RuntimeError("this batch is to fail")
        written(frame, batch)

    query = (
        source(spark, place)
        .writeStream.foreachBatch(die)
        .option("checkpointLocation", str(place.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except StreamingQueryException:
        pass  # as it was told to
    else:
        raise AssertionError("the batch did not fail")
    place.keep()
    scenario = Scenario(
        place.name,
        "a Delta source stopped in the middle of a version of four files: batch 2 failed",
        lambda spark, place: source(spark, place).writeStream.foreachBatch(written),
        (),
        Run(),
    )
    batches = [batch_of(progress) for progress in progress_of(query)]
    seen = {"query_id": query.id, "killed_batch": DIES_IN, "batches": batches}
    testify(spark, scenario, place, seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
