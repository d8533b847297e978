"""Spark's own `statestore` reader beside Floodmark on states that are rarely met: Scala's
operators, every type, odd shapes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from floodmark.engine.state.frame import state_frame
from floodmark.statestore.diff import state_changes
from floodmark.statestore.open import open_state
from floodmark.statestore.view import with_partitions
from floodmark.storage.files import open_files
from floodmark.storage.load import load

from rare_states import GROUP_FORMAT, RARE, VALIDATION, Rare, make_rare, settings  # isort: skip
from rare_states import groups  # isort: skip
from scala_code import compiled  # isort: skip
from spark_oracle import floodmark_says, spark_says, store_of  # isort: skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SOURCE = Path(__file__).with_name("scala_states.scala")
EVERY = [
    pytest.param(name, marks=[pytest.mark.soak] if case.soak else [], id=name)
    for name, case in RARE.items()
]
LATE_MS = 4_000_000_000_000
"""Beyond what an int holds; scala_states.scala sets it."""


@pytest.fixture(scope="session")
def code(spark: SparkSession) -> Any:
    """The Scala of this folder, compiled once for each of its texts and each Spark."""
    text = SOURCE.read_bytes() + spark.version.encode()
    name = hashlib.sha256(text).hexdigest()[:16]
    return compiled(spark, SOURCE, Path(__file__).parents[2] / ".cache" / "scala" / name)


@pytest.fixture(scope="session")
def rare(spark: SparkSession, code: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that makes a state once and gives its place."""
    root = tmp_path_factory.mktemp("rare")
    there: dict[str, str] = {}

    def make(name: str) -> str:
        if name not in there:
            there[name] = str(make_rare(spark, code, root, name, RARE[name]))
        return there[name]

    return make


@pytest.mark.parametrize("name", EVERY)
def test_the_same_rows_as_spark(spark: SparkSession, code: Any, rare: Any, name: str) -> None:
    case, place = RARE[name], rare(name)
    files = open_files(place)
    checkpoint = load(files)
    compared = 0
    with settings(spark, case):
        for operator in case.operators:
            for options in case.reads:
                for batch in range(case.batches):
                    asked = {"batchId": batch, "operatorId": operator, **options}
                    theirs = spark_says(spark, code, place, asked)
                    view = open_state(files, checkpoint, operator, store_of(options), batch)
                    assert floodmark_says(view) == theirs, asked
                    compared += len(theirs)
    assert (compared == 0) is case.empty


@pytest.mark.parametrize("name", ["types-keys-rocksdb", "groups-1-hdfs"])
def test_a_key_of_any_type_is_found_where_spark_put_it(rare: Any, name: str) -> None:
    files = open_files(rare(name))
    view = open_state(files, load(files))
    rows = view.rows()
    assert rows
    for row in rows:
        assert with_partitions(view, (row["partition"],)).lookup(row["key"]) == [row]


@pytest.mark.parametrize("name", ["types-keys-rocksdb", "scala-transform-ttl"])
def test_changes_are_what_two_readings_of_spark_differ_by(
    spark: SparkSession, code: Any, rare: Any, name: str
) -> None:
    case, place = RARE[name], rare(name)
    files = open_files(place)
    options, last = case.reads[0], case.batches - 1
    with settings(spark, case):
        before, after = (
            set(spark_says(spark, code, place, {"batchId": batch, **options}))
            for batch in (0, last)
        )
    changes = state_changes(files, load(files), 0, store_of(options), 0, last)
    assert len(after - before) == changes.added + changes.changed > 0
    assert len(before - after) == changes.removed + changes.changed
    assert len(before & after) == changes.same


@pytest.mark.parametrize(
    "name", ["types-keys-rocksdb", pytest.param("types-values-rocksdb", marks=pytest.mark.soak)]
)
def test_the_executors_give_rows_of_any_type(spark: SparkSession, rare: Any, name: str) -> None:
    place = rare(name)
    files = open_files(place)
    view = open_state(files, load(files))
    here = view.to_arrow()
    spread = state_frame(spark, place).toArrow()
    assert spread.num_rows == here.num_rows > 0
    # Spark gives times the session's zone, and nothing else another type.
    assert _told(spread.cast(here.schema)) == _told(here)


def _told(rows: pa.Table) -> list[str]:
    return sorted(str(row) for row in zip(*rows.columns, strict=True))


def test_a_timeout_of_group_format_1_is_a_long(
    spark: SparkSession, code: Any, tmp_path: Path
) -> None:
    """Its schema says int: Spark's own check refuses the rows, and unchecked its reader
    shows their lower half."""
    conf = {GROUP_FORMAT: "1", VALIDATION: "false"}
    case = Rare(groups("memories", "EventTime"), conf, batches=1)
    place = str(make_rare(spark, code, tmp_path, "timeouts", case))
    files = open_files(place)
    view = open_state(files, load(files))
    ours = floodmark_says(view)
    with settings(spark, case):
        theirs = spark_says(spark, code, place, {"batchId": 0})
    low = LATE_MS & 0xFFFFFFFF
    half = low - (1 << 32) if low >= 1 << 31 else low
    assert len(ours) == 4
    assert [row.replace(f" {LATE_MS})", f" {half})") for row in ours] == theirs
    assert [row["value"]["timeoutTimestamp"] for row in view.rows()] == [LATE_MS] * 4
