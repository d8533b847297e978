"""Spark's own `statestore` reader says what is right: the same rows, for every operator,
both providers, every batch."""

from __future__ import annotations

import datetime
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from floodmark.engine.state.frame import state_frame
from floodmark.state.shapes.operators import Shape
from floodmark.statestore.diff import state_changes
from floodmark.statestore.open import open_state
from floodmark.statestore.view import StateView
from floodmark.storage.files import open_files
from floodmark.storage.load import load

from spark_states import ROWS, STATES, make_state, session_conf  # isort: skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SPREAD = ["aggregate-hdfs", "join-rocksdb", "transform-rows", "aggregate-unique-ids"]


@pytest.fixture(scope="session")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that makes a state once and gives the root of all."""
    root = tmp_path_factory.mktemp("states")
    there: set[str] = set()

    def make(name: str) -> Path:
        if name not in there:
            make_state(spark, root, name)
            there.add(name)
        return root / name

    return make


def _conf(spark: SparkSession, name: str) -> AbstractContextManager[None]:
    """Spark's reader needs the session that wrote it, more or less."""
    return session_conf(spark, STATES[name][2])


def _in_its_partition(view: StateView, row: dict[str, Any]) -> bool:
    """The hash alone leads there: no other partition is looked at."""
    from floodmark.statestore.view import with_partitions

    return row in with_partitions(view, (row["partition"],)).lookup(row["key"])


def _of_spark(value: Any) -> Any:
    from pyspark.sql import Row

    if isinstance(value, Row):
        return tuple(_of_spark(part) for part in tuple(value))
    if isinstance(value, list):
        return [_of_spark(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


def _of_arrow(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return tuple(_of_arrow(scalar[at]) for at in range(len(scalar.type)))
    if isinstance(scalar, pa.ListScalar):
        return [_of_arrow(part) for part in scalar.values]
    value = scalar.as_py()
    if isinstance(value, datetime.datetime):
        # Spark's collect gives the machine's own time, without saying so.
        return value.astimezone().replace(tzinfo=None)
    return value


def _store(options: dict[str, str]) -> str | None:
    if "readRegisteredTimers" in options:
        return "timers"
    return next(iter(options.values()), None)


def _mine(view: StateView) -> list[str]:
    apart = view.reading.shape in (Shape.LIST, Shape.MAP, Shape.TIMER)
    rows = []
    for partition, key, value in zip(*view.to_arrow().columns, strict=True):
        shown = _of_arrow(value)
        beside = shown if apart else (shown,)
        rows.append(repr((_of_arrow(key), *beside, partition.as_py())))
    return sorted(rows)


@pytest.mark.parametrize("name", STATES)
def test_the_same_rows_as_spark(spark: SparkSession, made: Any, name: str) -> None:
    place = str(made(name))
    _ = spark.streams.active
    files = open_files(place)
    checkpoint = load(files)
    compared = 0
    with _conf(spark, name):
        for options in STATES[name][3]:
            for batch in range(len(ROWS)):
                reader = spark.read.format("statestore").option("batchId", batch)
                theirs = reader.options(**options).load(place).collect()
                view = open_state(files, checkpoint, store=_store(options), batch=batch)
                assert _mine(view) == sorted(repr(_of_spark(row)) for row in theirs), options
                compared += len(theirs)
    assert compared > 0


@pytest.mark.parametrize("name", SPREAD)
def test_the_executors_give_the_same_rows(spark: SparkSession, made: Any, name: str) -> None:
    place = str(made(name))
    files = open_files(place)
    view = open_state(files, load(files))
    frame = state_frame(spark, place)
    assert frame.columns == ["partition", "key", "value"]
    spread = sorted(
        repr((row.partition, _of_spark(row.key), _of_spark(row.value))) for row in frame.collect()
    )
    here = sorted(
        repr((part.as_py(), _of_arrow(key), _of_arrow(value)))
        for part, key, value in zip(*view.to_arrow().columns, strict=True)
    )
    assert spread == here
    assert spread


@pytest.mark.parametrize("name", ["dedup-hdfs", "aggregate-changelog", "dedup-within-rocksdb"])
def test_changes_are_what_sparks_change_feed_comes_to(
    spark: SparkSession, made: Any, name: str
) -> None:
    place = str(made(name))
    files, last = open_files(place), len(ROWS) - 1
    with _conf(spark, name):
        reader = spark.read.format("statestore")
        rows = reader.option("batchId", 0).load(place).collect()
        feed = (
            spark.read.format("statestore")
            .option("readChangeFeed", "true")
            .option("changeStartBatchId", 1)
            .option("changeEndBatchId", last)
            .load(place)
            .collect()
        )
    before = {repr(_of_spark(row.key)): _of_spark(row.value) for row in rows}
    after = dict(before)
    for row in sorted(feed, key=lambda row: row.batch_id):
        key = repr(_of_spark(row.key))
        if row.change_type == "delete":
            after.pop(key, None)
        else:
            after[key] = _of_spark(row.value)
    found = state_changes(files, load(files), first=0, last=last)
    both = before.keys() & after.keys()
    assert found.added == len(after.keys() - before.keys()) > 0
    assert found.removed == len(before.keys() - after.keys())
    assert found.changed == sum(before[key] != after[key] for key in both)
    assert found.same == len(both) - found.changed


@pytest.mark.parametrize(
    "name", ["aggregate-hdfs", "session-rocksdb", "transform-rows", "join-hdfs"]
)
def test_a_key_is_found_where_spark_put_it(made: Any, name: str) -> None:
    files = open_files(str(made(name)))
    view = open_state(files, load(files))
    rows = view.rows()
    for row in rows:
        found = view.lookup(row["key"])
        assert row in found
        assert _in_its_partition(view, row)
        assert all(one["key"] == row["key"] for one in found)
