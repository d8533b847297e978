"""Scenarios that read the clock, and those that only stop when they are told to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from scripts.golden.drive import spark_version, testify
from scripts.golden.logs import newest_log_entries
from scripts.golden.place import Place
from scripts.golden.scenario import Run, Scenario
from scripts.golden.testimony import batch_of, progress_of


def until(reached: Callable[[], bool], what: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


def a_second_later() -> None:
    """The rate source counts whole seconds, so a run within the same one finds nothing."""
    start = time.time()
    until(lambda: time.time() > start + 1.1, "the clock stands still")


def rate_rows(spark: SparkSession, place: Place) -> Any:
    return (
        spark.readStream.format("rate").option("rowsPerSecond", 5).load().writeStream.format("noop")
    )


def micro_rate_rows(spark: SparkSession, place: Place) -> Any:
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10)
    return reader.option("startTimestamp", 1000).load().writeStream.format("noop")


CLOCKED = (
    Scenario(
        "rate",
        "rate source: whole seconds since it was created",
        rate_rows,
        (Run(), Run(wait=a_second_later), Run(wait=a_second_later)),
        Run(wait=a_second_later),
    ),
    Scenario(
        "rate-micro-batch",
        "rate-micro-batch source: an offset and a timestamp",
        micro_rate_rows,
        (Run(), Run(), Run()),
        Run(),
    ),
)
CONTINUOUS = Scenario(
    "continuous",
    "continuous mode: offsets without metadata, an epoch for a batch",
    rate_rows,
    (),
    None,
)
ASYNC = Scenario(
    "async-progress",
    "async progress tracking: both logs have gaps",
    rate_rows,
    (),
    None,
)


def make_continuous(spark: SparkSession) -> None:
    _run_until_committed(
        spark, CONTINUOUS, lambda writer: writer.trigger(continuous="300 milliseconds"), 3
    )


def make_async(spark: SparkSession) -> None:
    def trigger(writer: Any) -> Any:
        return (
            writer.option("asyncProgressTrackingEnabled", "true")
            .option("asyncProgressTrackingCheckpointIntervalMs", 1500)
            .trigger(processingTime="0 seconds")
        )

    _run_until_committed(spark, ASYNC, trigger, 3)


def _run_until_committed(
    spark: SparkSession, scenario: Scenario, trigger: Callable[[Any], Any], batch: int
) -> None:
    place = Place(scenario.name)
    place.clear()
    writer = trigger(scenario.build(spark, place))
    query = writer.option("checkpointLocation", str(place.checkpoint)).start()

    def committed() -> bool:
        newest = newest_log_entries(spark, spark_version(spark), place.checkpoint)["commit"]
        return newest is not None and newest["batch"] >= batch

    try:
        until(committed, f"{scenario.name}: batch {batch} was not committed")
    finally:
        query.stop()
    place.keep()
    batches = [batch_of(progress) for progress in progress_of(query)]
    testify(spark, scenario, place, {"query_id": query.id, "batches": batches})
