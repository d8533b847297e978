"""`repartition` where Spark may have spread the keys by some of the grouping columns only."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark import api
from floodmark.errors import WouldLose
from floodmark.statestore.rewrite.spread import BY_ALL_KEYS, STRICT
from integration.test_repair_restarts import settings
from integration.test_repair_spark import GO

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
PARTITIONS = "spark.sql.shuffle.partitions"


def feed(folder: Path, number: int) -> None:
    rows = [{"a": f"a{at % 5}", "b": f"b{at % 7}"} for at in range(35)]
    (folder / "in").mkdir(exist_ok=True)
    path = folder / "in" / f"{number}.json"
    path.write_text("\n".join(map(json.dumps, rows)))
    os.utime(path, (1_700_000_000 + number,) * 2)


def run(
    spark: SparkSession, folder: Path, place: Path, keys: Sequence[str], by: str | None
) -> list[tuple[Any, ...]]:
    """The counts after all input."""
    frame = spark.readStream.schema("a string, b string").json(str(folder / "in"))
    spread = frame.repartition(by) if by else frame
    got: list[tuple[Any, ...]] = []

    def take(found: DataFrame, _batch: int) -> None:
        got[:] = sorted(map(tuple, found.collect()))

    query = (
        spread.groupBy(*keys)
        .count()
        .writeStream.foreachBatch(take)
        .outputMode("complete")
        .option("checkpointLocation", str(place))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    return got


@pytest.mark.parametrize(
    ("strict", "partitions", "keys", "by", "refused"),
    [
        ("false", "1", ["a", "b"], "a", "one partition"),
        ("false", "2", ["a", "b"], "a", "are not in the partition that Spark's hash gives"),
        ("false", "2", ["a", "b"], None, None),
        ("false", "1", ["a"], "a", None),
        ("true", "1", ["a", "b"], "a", None),
    ],
)
def test_counts_go_on_or_the_change_is_refused(
    strict: str,
    partitions: str,
    keys: list[str],
    by: str | None,
    refused: str | None,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    place, new = tmp_path / "cp", tmp_path / "new"
    with settings(spark, {STRICT: strict, PARTITIONS: partitions}):
        feed(tmp_path, 0)
        run(spark, tmp_path, place, keys, by)
        if refused:
            with pytest.raises(WouldLose) as error:
                api.repartition(str(place), str(new), partitions=3, carrying=GO)
            assert refused in f"{error.value.what} {error.value.why}"
            assert not new.exists()
            return
        api.repartition(str(place), str(new), partitions=3, carrying=GO)
        feed(tmp_path, 1)
        on = run(spark, tmp_path, new, keys, by)
        every = spark.read.schema("a string, b string").json(str(tmp_path / "in"))
        assert on == sorted(map(tuple, every.groupBy(*keys).count().collect()))


def test_what_is_accepted_is_done(spark: SparkSession, tmp_path: Path) -> None:
    """The query hashes all of its keys, and the user knows it."""
    place, new = tmp_path / "cp", tmp_path / "new"
    with settings(spark, {STRICT: "false", PARTITIONS: "1"}):
        feed(tmp_path, 0)
        run(spark, tmp_path, place, ["a", "b"], None)
        with pytest.raises(WouldLose, match="which columns") as error:
            api.repartition(str(place), str(new), partitions=3, carrying=GO)
        assert f"--accept {BY_ALL_KEYS}" in error.value.do
        api.repartition(str(place), str(new), partitions=3, accept=[BY_ALL_KEYS], carrying=GO)
        feed(tmp_path, 1)
        assert {row[-1] for row in run(spark, tmp_path, new, ["a", "b"], None)} == {2}
