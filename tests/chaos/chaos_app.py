"""The application that the campaign kills: one pipeline, shaped by its parameters.

Two doors for whoever kills it, both closed unless the environment opens them: a pause
on every row (FLOODMARK_CHAOS_SLOW_MS) widens the windows of the protocol, and a hold
(FLOODMARK_CHAOS_HOLD=POINT:N) leaves a marker and waits at a point of the N-th batch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark import once, pipeline

EVENT = "id BIGINT, key STRING, amount BIGINT"
HELD_SECONDS = 120.0


@pipeline(checkpoint="{where}/{place}", needs=("kafka", "delta"))
def chaos(
    spark: Any,
    start: Any,
    *,
    base: str,
    where: str,
    source: str,
    shape: str,
    sink: str,
    rows_per_batch: int,
    place: str = "checkpoint",
    servers: str = "",
    topic: str = "",
    database: str = "",
) -> Any:
    readers = {
        "files": lambda: _files(spark, base),
        "kafka": lambda: _kafka(spark, servers, topic, rows_per_batch),
        "delta": lambda: _delta(spark, base),
    }
    shapes = {"all": lambda rows: rows, "totals": _totals, "distinct": _distinct}
    rows = _slowly(shapes[shape](readers[source]()))
    if sink == "delta":
        mode = "complete" if shape == "totals" else "append"
        return rows.writeStream.outputMode(mode).format("delta").option("path", f"{base}/sink")
    if sink == "parquet":
        return rows.writeStream.format("parquet").option("path", f"{base}/sink")
    write = (
        once.delta(f"{base}/sink")
        if sink == "delta-batch"
        else once.sql(database, _insert(base, shape))
    )
    mode = "update" if shape == "totals" else "append"
    return rows.writeStream.outputMode(mode).foreachBatch(_holding(write, base))


def _files(spark: Any, base: str) -> Any:
    reader = spark.readStream.schema(EVENT).option("maxFilesPerTrigger", 1)
    return reader.json(f"{base}/input")


def _kafka(spark: Any, servers: str, topic: str, rows_per_batch: int) -> Any:
    from pyspark.sql.functions import col, from_json

    reader = spark.readStream.format("kafka")
    impatient = os.environ.get("FLOODMARK_CHAOS_KAFKA_MS")
    if impatient:  # so that a broker that is away for seconds is an outage
        for name in ("request.timeout.ms", "default.api.timeout.ms"):
            reader = reader.option(f"kafka.{name}", impatient)
    records = (
        reader.option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", rows_per_batch)
        .load()
    )
    return records.select(from_json(col("value").cast("string"), EVENT).alias("e")).select("e.*")


def _delta(spark: Any, base: str) -> Any:
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
    return reader.load(f"{base}/input")


def _totals(rows: Any) -> Any:
    from pyspark.sql.functions import count, sum

    return rows.groupBy("key").agg(sum("amount").alias("total"), count("*").alias("events"))


def _distinct(rows: Any) -> Any:
    return rows.dropDuplicates(["id"])


def _slowly(rows: Any) -> Any:
    """The state of a task is committed after its last row, so this holds that open, too."""
    # In the JVM: a Python worker would cost more than what is to be slowed down. How long is
    # asked there, too: a filter that comes and goes would be another query under one state.
    asked = "java_method('java.lang.System', 'getenv', 'FLOODMARK_CHAOS_SLOW_MS')"
    sleep = f"java_method('java.lang.Thread', 'sleep', coalesce(try_cast({asked} AS BIGINT), 0L))"
    # Not IS NOT NULL, which the optimizer knows to be true without a call.
    return rows.where(f"coalesce({sleep}, 'slept') != ''")


def _insert(base: str, shape: str) -> Callable[[Any, Any, int], None]:
    columns = ("key", "total", "events") if shape == "totals" else ("id", "key", "amount")

    def write(connection: Any, batch: Any, batch_id: int) -> None:
        import sqlalchemy

        names = ", ".join(f":{column}" for column in columns)
        insert = sqlalchemy.text(f"INSERT INTO sink VALUES ({names})")
        rows = [row.asDict() for row in batch.collect()]
        half = (len(rows) + 1) // 2
        for part in (rows[:half], rows[half:]):
            if part:
                connection.execute(insert, part)
            if part is not rows[half:]:
                _hold(base, "during-sink", batch_id)

    return write


def _holding(write: Callable[[Any, int], None], base: str) -> Callable[[Any, int], None]:
    def write_and_hold(batch: Any, batch_id: int) -> None:
        write(batch, batch_id)
        _hold(base, "after-sink", batch_id)

    return write_and_hold


_passed: dict[str, int] = {}


def _hold(base: str, point: str, batch_id: int) -> None:
    """Says where the batch is, and waits to be killed there."""
    wanted, _, nth = os.environ.get("FLOODMARK_CHAOS_HOLD", "").partition(":")
    if wanted != point:
        return
    _passed[point] = _passed.get(point, 0) + 1
    if _passed[point] != int(nth):
        return
    Path(base, "held", f"{point}-{batch_id}").touch()
    time.sleep(HELD_SECONDS)
