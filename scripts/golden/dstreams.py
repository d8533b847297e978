"""The old kind: a StreamingContext with state, checkpointed by Java serialization."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from scripts.golden.drive import write_expected
from scripts.golden.place import Place
from scripts.golden.unending import until

SECONDS = 2


def make_dstreams(spark: SparkSession) -> None:
    """Counts words by updateStateByKey over a folder of text files."""
    place = Place("dstreams")
    place.clear()
    streaming, counted = _word_counts(spark, place)
    streaming.start()
    beside = place.folder / "lines"
    beside.write_text("flood mark flood\n")
    beside.rename(place.input() / "lines.txt")
    until(lambda: {"flood": 2, "mark": 1} in counted, "the words were not counted")
    streaming.stop(stopSparkContext=False, stopGraceFully=True)
    place.keep()
    write_expected(
        place,
        {
            "spark": spark.version,
            "scenario": "dstreams",
            "about": "word counts by updateStateByKey over text files, batches of 2 seconds",
            "kind": "dstreams",
            "counts": counted[-1],
            **as_recovered(spark, place),
        },
    )


def _word_counts(spark: SparkSession, place: Place) -> tuple[Any, list[dict[str, int]]]:
    from pyspark.streaming import StreamingContext

    streaming = StreamingContext(spark.sparkContext, SECONDS)
    streaming.checkpoint(str(place.checkpoint))
    counted: list[dict[str, int]] = []
    words = streaming.textFileStream(str(place.input())).flatMap(lambda line: line.split())
    counts = words.map(lambda word: (word, 1)).updateStateByKey(
        lambda new, old: sum(new) + (old or 0), numPartitions=2
    )
    counts.foreachRDD(lambda rdd: counted.append(dict(rdd.collect())))
    return streaming, counted


def as_recovered(spark: SparkSession, place: Place) -> dict[str, Any]:
    """What Spark itself reads back when it recovers from the folder."""
    jvm: Any = spark._jvm
    reader = getattr(jvm, "org.apache.spark.streaming.CheckpointReader")
    files = getattr(jvm, "org.apache.spark.streaming.Checkpoint").getCheckpointFiles(
        str(place.checkpoint), jvm.scala.Option.empty()
    )
    java = spark.sparkContext._jsc.sc()
    read = reader.read(str(place.checkpoint), java.conf(), java.hadoopConfiguration(), False)
    checkpoint = read.get()
    return {
        # Oldest first; recovery begins at the end.
        "checkpoint_files": [files.apply(index).getName() for index in range(files.size())],
        "checkpoint_time_ms": checkpoint.checkpointTime().milliseconds(),
        "pending_times_ms": [time.milliseconds() for time in checkpoint.pendingTimes()],
        "batch_interval_ms": checkpoint.graph().batchDuration().milliseconds(),
        "app_name": checkpoint.framework(),
    }
