"""What a repair says that sinks get again, against what they then get, row for row, by Spark.

The sinks are one that remembers nothing, as Kafka and a foreachBatch that appends, and Delta.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark import api
from floodmark.changes.plan import Plan
from floodmark.errors import WouldLose
from integration.test_repair_restarts import settings
from integration.test_repair_spark import CONF, GO

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
KEYS = 40
LAST = {"append": 2, "update": 1, "complete": 1}
"""The newest batch. In append mode it reads nothing: it only closes a window and emits 40 keys.
In update mode such a batch is dropped here, so that the newest one has read something."""
Rows = Counter[tuple[Any, ...]]


@dataclass
class Stream:
    """Counts by key and window; the second file moves the watermark past the first one's."""

    spark: SparkSession
    folder: Path
    mode: str
    kind: str

    @property
    def place(self) -> Path:
        return self.folder / "cp"

    @property
    def table(self) -> Path:
        return self.folder / "table"

    def feed(self, number: int, second: int, keys: int) -> None:
        lines = [json.dumps({"k": f"k{key}", "at": second}) for key in range(keys)]
        (self.folder / "in").mkdir(exist_ok=True)
        path = self.folder / "in" / f"{number:02}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (second, second))

    def run(self, to_delta: bool = False) -> dict[int, Rows]:
        """Runs until all input is read: batch → the rows that the sink got of it."""
        from pyspark.sql import functions as sf

        source = self.spark.readStream.schema("k string, at long").option("maxFilesPerTrigger", 1)
        times = source.json(str(self.folder / "in")).withColumn("time", sf.timestamp_seconds("at"))
        counted = (
            times.withWatermark("time", "0 seconds")
            .groupBy("k", sf.window("time", "10 seconds"))
            .count()
            .select("k", sf.unix_timestamp("window.start").alias("start"), "count")
        )
        got: dict[int, Rows] = {}

        def take(frame: DataFrame, batch: int) -> None:
            got.setdefault(batch, Counter()).update(map(tuple, frame.collect()))

        writer = counted.writeStream.outputMode(self.mode)
        if to_delta:
            writer = writer.format("delta").option("path", str(self.table))
        else:
            writer = writer.foreachBatch(take)
        conf = CONF[self.kind] | {
            "spark.sql.streaming.noDataMicroBatches.enabled": str(self.mode == "append").lower()
        }
        with settings(self.spark, conf):
            query = (
                writer.option("checkpointLocation", str(self.place))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(300)
        return got

    def in_table(self) -> Rows:
        return Counter(map(tuple, self.spark.read.format("delta").load(str(self.table)).collect()))


def begun(
    spark: SparkSession, folder: Path, mode: str, kind: str = "hdfs", to_delta: bool = False
) -> tuple[Stream, dict[int, Rows]]:
    stream = Stream(spark, folder, mode, kind)
    stream.feed(0, 1_700_000_000, KEYS)
    stream.feed(1, 1_700_000_100, 1)
    return stream, stream.run(to_delta)


def lose_newest_state(place: Path) -> None:
    """One partition's newest version."""
    version = max(int(path.name) for path in (place / "commits").glob("[0-9]*")) + 1
    lost = [path for path in (place / "state/0/0").iterdir() if version_of(path) == version]
    assert lost
    for path in lost:
        path.unlink()


def version_of(path: Path) -> int | None:
    stem = path.name.removeprefix(".").split(".")[0].split("_")[0]
    return int(stem) if stem.isdecimal() else None


def lose_commits(place: Path) -> None:
    shutil.rmtree(place / "commits")


DAMAGES = {"state": lose_newest_state, "commits": lose_commits}


def refused_then_repaired(place: Path, *, sink: Path | None = None) -> Plan:
    where = None if sink is None else str(sink)
    with pytest.raises(WouldLose, match="repeats"):
        api.repair(str(place), sink=where, carrying=GO)
    return api.repair(str(place), sink=where, accept=["repeats"], carrying=GO).plan


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("mode", "kind"),
    [("append", "hdfs"), ("append", "changelog"), ("update", "hdfs"), ("complete", "rocksdb")],
)
def test_a_sink_that_remembers_nothing(
    mode: str, kind: str, damage: str, spark: SparkSession, tmp_path: Path
) -> None:
    stream, before = begun(spark, tmp_path, mode, kind)
    last = LAST[mode]
    assert max(before) == last
    DAMAGES[damage](stream.place)
    plan = refused_then_repaired(stream.place)
    assert plan.options["emits_again"] == [{"batches": [last], "rows": None}]
    (said,) = [item.words for item in plan.consequences if item.sink == "--accept repeats"]
    assert "a second time" in said
    assert "cannot be counted" in said
    after = stream.run()
    assert {batch: rows for batch, rows in after.items() if rows} == {last: before[last]}
    assert before[last].total() == {"append": KEYS, "update": 1, "complete": KEYS + 1}[mode]


def test_rows_that_delta_gets_again_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    stream, _ = begun(spark, tmp_path, "append", to_delta=True)
    before = stream.in_table()
    assert before.total() == KEYS
    lose_newest_state(stream.place)
    plan = refused_then_repaired(stream.place, sink=stream.table)
    assert plan.options["emits_again"] == [{"batches": [2], "rows": KEYS}]
    assert f"By its log, the sink has {KEYS} rows of them." in plan.consequences[0].words
    stream.run(to_delta=True)
    assert stream.in_table() == before + before


def test_delta_skips_the_newest_batch_where_commits_are_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream, _ = begun(spark, tmp_path, "append", to_delta=True)
    before = stream.in_table()
    lose_commits(stream.place)
    plan = api.repair(str(stream.place), sink=str(stream.table), carrying=GO).plan
    assert plan.options["needs_accepted"] == []
    stream.feed(2, 1_700_000_200, 1)
    stream.run(to_delta=True)
    assert stream.in_table() == before + Counter([("k0", 1_700_000_100, 1)])
