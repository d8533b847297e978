"""Findings that need more than one torn file: made, mended, and Spark goes on from them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broken.damage import set_conf, set_metadata
from floodmark import api
from integration.test_repair_spark import CHANGELOG, CONF, GO, ROCKSDB, Sink, Stream, read_tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PARTITIONS = "spark.sql.shuffle.partitions"


@contextmanager
def settings(spark: SparkSession, conf: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def begun(spark: SparkSession, folder: Path, kind: str = "hdfs", batches: int = 2) -> Stream:
    stream = Stream(spark, folder, kind)
    for number in range(batches):
        stream.feed(number)
    stream.run(folder / "base", stream.sink)
    return stream


def rules(place: Path) -> set[str]:
    return {item.rule for item in api.doctor(str(place), 1.0)}


def mended_and_run_on(stream: Stream, place: Path, rule: str, number: int = 2) -> None:
    assert rule in rules(place)
    change = api.repair(str(place), carrying=GO)
    assert change.plan.options["needs_accepted"] == []
    assert rules(place) == set()
    stream.feed(number)
    stream.run(place, stream.sink)
    assert Counter(stream.sink.newest) == stream.expected()


def test_a_repartition_that_was_never_finished(spark: SparkSession, tmp_path: Path) -> None:
    """FM134: Spark's own tool plans a batch that reads nothing, and died there."""
    with settings(spark, CONF["hdfs"]):
        stream = begun(spark, tmp_path)
        tree = {"offsets/2": (tmp_path / "base/offsets/1").read_bytes()}
        time_ms = json.loads(tree["offsets/2"].split(b"\n")[1])["batchTimestampMs"]
        set_metadata(tree, 2, batchTimestampMs=time_ms + 1)
        set_conf(tree, 2, PARTITIONS, "5")
        (tmp_path / "base/offsets/2").write_bytes(tree["offsets/2"])
        mended_and_run_on(stream, tmp_path / "base", "unfinished-repartition")


def test_what_a_first_write_left_over(spark: SparkSession, tmp_path: Path) -> None:
    """FM113: killed while it planned its very first batch."""
    with settings(spark, CONF["hdfs"]):
        stream = begun(spark, tmp_path)
        place = tmp_path / "again"
        (place / "offsets").mkdir(parents=True)
        shutil.copy(tmp_path / "base/metadata", place / "metadata")
        (place / "offsets/.0.27a9afcf-0a29-40d8-9ec4-8b3d8c4b8f1c.tmp").write_bytes(b"v1")
        stream.sink = Sink()
        mended_and_run_on(stream, place, "leftovers-block-first-start")


def test_a_partition_count_that_no_entry_says(spark: SparkSession, tmp_path: Path) -> None:
    """FM138: version 2 of the offset log, in a query's first run; then the setting changes."""
    conf = CONF["hdfs"] | {"spark.sql.streaming.offsetLog.formatVersion": "2"}
    with settings(spark, conf):
        stream = begun(spark, tmp_path)
        place = tmp_path / "base"
        tree = read_tree(place)
        for batch in (0, 1):
            set_conf(tree, batch, PARTITIONS, None)
            (place / f"offsets/{batch}").write_bytes(tree[f"offsets/{batch}"])
            (place / f"offsets/.{batch}.crc").unlink(missing_ok=True)
        with settings(spark, {PARTITIONS: "3"}):
            mended_and_run_on(stream, place, "partition-count-missing")


def test_a_checkpoint_that_was_copied_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    """FM136: its operator metadata names schemas by the path they had."""
    conf = ROCKSDB | {CHANGELOG: "true", "spark.sql.streaming.join.stateFormatVersion": "3"}
    found: list[tuple[Any, ...]] = []

    def run(place: Path) -> None:
        sides = [
            spark.readStream.schema("id long, v string").json(str(tmp_path / name))
            for name in ("left", "right")
        ]
        query = (
            sides[0]
            .join(sides[1].withColumnRenamed("v", "w"), "id")
            .writeStream.foreachBatch(lambda frame, _: found.extend(map(tuple, frame.collect())))
            .option("checkpointLocation", str(place))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(1200)
        assert not query.isActive

    def feed(side: str, name: str, *ids: int) -> None:
        (tmp_path / side).mkdir(exist_ok=True)
        lines = [json.dumps({"id": number, "v": f"{side}{number}"}) for number in ids]
        (tmp_path / side / name).write_text("\n".join(lines))

    with settings(spark, conf):
        feed("left", "0.json", 1, 2, 3)
        feed("right", "0.json", 1)
        run(tmp_path / "first")
        (tmp_path / "first").rename(tmp_path / "moved")
        assert rules(tmp_path / "moved") == {"moved-checkpoint"}
        api.repair(str(tmp_path / "moved"), carrying=GO)
        assert rules(tmp_path / "moved") == set()
        feed("right", "1.json", 2, 3)
        run(tmp_path / "moved")
    assert sorted(found) == [(n, f"left{n}", f"right{n}") for n in (1, 2, 3)]
