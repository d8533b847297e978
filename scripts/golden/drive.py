"""Runs a scenario: its runs, the copy of its checkpoint, the engine's word, the restart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from scripts.golden.logs import newest_log_entries
from scripts.golden.place import Place
from scripts.golden.scenario import Run, Scenario, Version
from scripts.golden.testimony import (
    batch_of,
    progress_of,
    state_metadata,
    state_rows,
)


def spark_version(spark: SparkSession) -> Version:
    major, minor = spark.version.split(".")[:2]
    return int(major), int(minor)


def make(spark: SparkSession, scenario: Scenario) -> None:
    place = Place(scenario.name)
    place.clear()
    batches: list[dict[str, Any]] = []
    for run in scenario.runs:
        query = _run(spark, scenario, place, run)
        batches += [batch_of(progress) for progress in progress_of(query)]
    place.keep(side_files=scenario.side_files)
    if scenario.sink_output:
        place.keep_sink_log(scenario.sink_output)
    testify(spark, scenario, place, {"query_id": query.id, "batches": batches})


def make_killed(spark: SparkSession, scenario: Scenario) -> None:
    """`scripts.golden.killed` ran it and died in a batch; this takes it from there."""
    place = Place(scenario.name)
    seen = json.loads((place.folder / "seen.json").read_text())
    place.keep(side_files=scenario.side_files)
    testify(spark, scenario, place, seen)


def testify(spark: SparkSession, scenario: Scenario, place: Place, seen: Mapping[str, Any]) -> None:
    """Write down all that the engine says, and last what it does when it starts again."""
    with settings(spark, scenario.conf):
        logs = newest_log_entries(spark, spark_version(spark), place.checkpoint)
    expected = {
        "spark": spark.version,
        "scenario": scenario.name,
        "about": scenario.about,
        "source_ids": scenario.source_ids or None,
        "conf": dict(scenario.conf),
        "killed_batch": None,
        **seen,
        "logs": logs,
        **_state(spark, scenario, place),
        "restart": _restart(spark, scenario, place),
    }
    write_expected(place, expected)


def _restart(spark: SparkSession, scenario: Scenario, place: Place) -> dict[str, Any] | None:
    """The first batch that the engine runs when it starts again from the kept checkpoint."""
    if scenario.after is None:
        return None
    query = _run(spark, scenario, place, scenario.after)
    return batch_of(progress_of(query)[0])


def write_expected(place: Place, expected: Mapping[str, Any]) -> None:
    text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True)
    (place.kept / "expected.json").write_text(text + "\n", encoding="utf-8")


def _run(spark: SparkSession, scenario: Scenario, place: Place, run: Run) -> Any:
    for source, files in run.files.items():
        place.write(source, files)
    if run.wait:
        run.wait()
    with settings(spark, {**scenario.conf, **run.conf}):
        writer = (run.build or scenario.build)(spark, place)
        query = (
            writer.option("checkpointLocation", str(place.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return query


def _state(spark: SparkSession, scenario: Scenario, place: Place) -> dict[str, Any]:
    version = spark_version(spark)
    # The readers look for a coordinator that only touching the streams starts.
    _ = spark.streams.active
    told: dict[str, Any] = {"state_rows": None, "state_rows_by": None, "state_metadata": None}
    with settings(spark, scenario.conf):
        if version >= (4, 0) and (place.checkpoint / "state").is_dir():
            told["state_metadata"] = state_metadata(spark, place.checkpoint)
        if scenario.stores and version >= scenario.stores_since:
            told["state_rows"] = state_rows(spark, place.checkpoint, scenario.stores)
            told["state_rows_by"] = spark.version
    return told


@contextmanager
def settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in conf:
            spark.conf.unset(key)
