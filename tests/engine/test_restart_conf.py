"""A checkpoint of an older Spark pins fewer settings: Spark itself says what it takes for them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.engine.code.restart_conf import restart_conf
from floodmark.errors import CannotOutline

pytestmark = pytest.mark.spark

GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
SHUFFLE = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
AGGREGATION = "spark.sql.streaming.aggregation.stateFormatVersion"
JOIN = "spark.sql.streaming.join.stateFormatVersion"
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
PINNED_BY_2_3 = {SHUFFLE, PROVIDER}
CODE = """
import pyspark.sql.functions as F
from floodmark import pipeline

@pipeline(checkpoint="{root}/checkpoint")
def query(spark, start, *, root, input, sink):
    rows = spark.readStream.schema("at TIMESTAMP, k STRING, v LONG").json(input)
    rows = rows.withWatermark("at", "1 hour")
    made = MADE
    return made.writeStream.outputMode("MODE").foreachBatch(
        lambda batch, number: batch.coalesce(1).write.mode("append").json(sink)
    )
"""
SUM = 'rows.groupBy(F.window("at", "1 hour"), "k").agg(F.sum("v").alias("s"){0})'
COUNTED = SUM.format(', F.count("*").alias("n")')
JOINED = """rows.alias("a").join(
        rows.select("k", "at", F.col("v").alias("w")).alias("b"),
        F.expr("a.k = b.k AND b.at = a.at"), "left_outer",
    ).select("a.k", "v", "w")"""


class Older:
    """A query whose checkpoint pins as little as that of an older Spark."""

    def __init__(self, session: Any, folder: Path, made: str, mode: str, conf: dict[str, str]):
        self.folder, self.mode = folder, mode
        self.conf = {SHUFFLE: "2", **conf}
        (folder / "input").mkdir()
        self.app = self.write("app", made)
        self.feed(1, "k1", 5)
        self.run(self.app, "old", self.conf)
        self.checkpoint = str(folder / "old" / "checkpoint")

    def write(self, name: str, made: str) -> str:
        path = self.folder / f"{name}.py"
        path.write_text(CODE.replace("MADE", made).replace("MODE", self.mode))
        return str(path)

    def feed(self, number: int, key: str, value: int) -> None:
        row = {"at": "2024-01-01T00:00:00Z", "k": key, "v": value}
        (self.folder / "input" / f"{number}.json").write_text(json.dumps(row) + "\n")

    def settings(self, root: str) -> dict[str, str]:
        places = {name: self.folder / name for name in ("input", "sink")}
        return {key: str(value) for key, value in {"root": self.folder / root, **places}.items()}

    def run(self, app: str, root: str, conf: dict[str, str]) -> list[dict[str, Any]]:
        """Run to the end of the input; return the rows that the sink got."""
        sink = self.folder / "sink"
        shutil.rmtree(sink, ignore_errors=True)
        api.run(app, available_now=True, settings=self.settings(root), conf=conf)
        lines = [line for file in sink.glob("*.json") for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]

    def forget(self, kept: set[str]) -> None:
        """Take all other settings, and the schemas that old Sparks did not write, away."""
        place = Path(self.checkpoint)
        for entry in (place / "offsets").glob("[0-9]*"):
            version, metadata, *rest = entry.read_text().split("\n")
            found = json.loads(metadata)
            found["conf"] = {key: value for key, value in found["conf"].items() if key in kept}
            entry.write_text("\n".join((version, json.dumps(found), *rest)))
        for entry in place.rglob(".*.crc"):
            entry.unlink()

    def newest_conf(self, root: str = "old") -> dict[str, str]:
        offsets = self.folder / root / "checkpoint" / "offsets"
        newest = max((one for one in offsets.glob("[0-9]*")), key=lambda one: int(one.name))
        conf: dict[str, str] = json.loads(newest.read_text().split("\n")[1])["conf"]
        return conf

    def verdict(self, app: str, **more: Any) -> str:
        judged = api.check(self.checkpoint, app, settings=self.settings("old"), **more)
        return str(judged.verdict.value)


@pytest.mark.parametrize("kept", [set(), PINNED_BY_2_3, {SHUFFLE, PROVIDER, AGGREGATION, POLICY}])
def test_spark_itself_goes_on_with_the_same(session: Any, tmp_path: Path, kept: set[str]) -> None:
    older = Older(session, tmp_path, "rows", "append", {})
    older.forget(kept)
    told = restart_conf(session, older.newest_conf())
    older.feed(2, "k1", 7)
    older.run(older.app, "old", {SHUFFLE: "2"})
    used = older.newest_conf()
    assert {AGGREGATION, JOIN, POLICY} <= set(told)
    assert {key: used.get(key) for key in told} == told


def test_a_query_that_has_not_begun_gets_what_is_new(session: Any) -> None:
    assert restart_conf(session, None) == {}
    assert restart_conf(session, {AGGREGATION: "2"})[AGGREGATION] == "2"


def test_windows_of_an_older_spark_are_the_same_and_are_carried(
    session: Any, tmp_path: Path
) -> None:
    older = Older(session, tmp_path, SUM.format(""), "update", {AGGREGATION: "1"})
    older.forget(PINNED_BY_2_3)
    assert older.verdict(older.app) == "same"
    assert older.verdict(older.app, rehearse=True) in ("same", "compatible")
    counted = older.write("counted", COUNTED)
    api.migrate(
        older.checkpoint,
        str(tmp_path / "new" / "checkpoint"),
        app=counted,
        settings=older.settings("new"),
        carrying=GO,
    )
    older.feed(2, "k1", 7)
    (row,) = older.run(counted, "new", {SHUFFLE: "2"})
    assert (row["s"], row["n"]) == (12, 1)


def test_a_join_that_spark_cannot_continue_names_the_checkpoint_as_the_cause(
    session: Any, tmp_path: Path
) -> None:
    older = Older(session, tmp_path, JOINED, "append", {})
    older.forget(PINNED_BY_2_3)
    with pytest.raises(CannotOutline, match="state formats of the checkpoint") as refused:
        older.verdict(older.app)
    assert "SPARK-26154" in str(refused.value)
