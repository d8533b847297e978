"""Findings that need more than one torn file: made, mended, and Spark goes on from them."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import samples
from broken.damage import set_conf, set_metadata
from floodmark import api
from integration.test_repair_spark import (
    CHANGELOG,
    CONF,
    GO,
    IN_A_FILE,
    ROCKSDB,
    Sink,
    Stream,
    read_tree,
)
from rules.examples import Tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


CODEC = "spark.sql.streaming.stateStore.compression.codec"


def test_what_describes_the_state_is_torn_or_wrong(spark: SparkSession, tmp_path: Path) -> None:
    """FM123, FM125, and FM126 of the codec, of the provider and of both."""
    with settings(spark, CONF["hdfs"]):
        stream = begun(spark, tmp_path)
        tree = read_tree(tmp_path / "base")
        stream.feed(2)
        for rule, damage in {
            "state-schema-unreadable": {"state/0/0/_metadata/schema": b""},
            "operator-metadata-unreadable": {"state/0/_metadata/metadata": b"v1\n{"},
            "conf-changed": _edited(tree, {CODEC: "zstd", **ROCKSDB}),
        }.items():
            place = tmp_path / rule
            samples.write(place, tree | damage)
            for path in damage:
                folder, name = (place / path).parent, (place / path).name
                (folder / f".{name}.crc").unlink()
            assert rule in rules(place)
            change = api.repair(str(place), accept=["unchanged-query"], carrying=GO)
            needed = [] if rule == "conf-changed" else ["unchanged-query"]
            assert change.plan.options["needs_accepted"] == needed
            sink = Sink()
            assert stream.run(place, sink) == IN_A_FILE
            assert Counter(sink.newest) == stream.expected(), rule
            assert rules(place) == set(), rule


def _edited(tree: Tree, conf: dict[str, str]) -> Tree:
    """The newest entry with other settings."""
    edited = {"offsets/1": tree["offsets/1"]}
    for key, value in conf.items():
        set_conf(edited, 1, key, value)
    return edited


def test_where_a_rate_source_began(spark: SparkSession, tmp_path: Path) -> None:
    """FM130: its values go on where they stopped, and its times differ by what the plan says."""
    place = tmp_path / "rate"
    rows: list[tuple[int, int]] = []

    taken: set[int] = set()

    def take(frame: DataFrame, batch: int) -> None:
        if batch not in taken:  # one in flight when the query stopped is computed twice
            found = sorted(frame.collect(), key=lambda row: row.value)
            rows.extend((row.value, int(row.timestamp.timestamp() * 1000)) for row in found)
        taken.add(batch)

    def run_until(values: int) -> None:
        rate = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
        query = rate.writeStream.foreachBatch(take).option("checkpointLocation", str(place)).start()
        try:
            deadline = time.monotonic() + 300
            while len(rows) < values and query.isActive and time.monotonic() < deadline:
                time.sleep(0.2)
        finally:
            query.stop()
        assert len(rows) >= values

    run_until(10)
    before, start = len(rows), int((place / "sources/0/0").read_text().split("\n")[1])
    (place / "sources/0/0").write_bytes(b"")
    (place / "sources/0/.0.crc").unlink(missing_ok=True)
    assert rules(place) == {"source-start-unreadable"}
    api.repair(str(place), accept=["changed-files"], carrying=GO)
    later = int((place / "sources/0/0").read_text().split("\n")[1]) - start
    assert 0 <= later < 1000
    run_until(before + 10)
    assert [value for value, _ in rows] == list(range(len(rows)))
    assert {ms - start - 200 * value for value, ms in rows[:before]} == {0}
    assert {ms - start - 200 * value for value, ms in rows[before:]} == {later}


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
        moved = tmp_path / "möved %20 #2"
        (tmp_path / "first").rename(moved)
        assert rules(moved) == {"moved-checkpoint"}
        api.repair(str(moved), carrying=GO)
        assert rules(moved) == set()
        feed("right", "1.json", 2, 3)
        run(moved)
        # A schema that Spark does not find is written anew, and compared with nothing.
        assert len(list(moved.glob("state/0/_stateSchema/default/0_*"))) == 1
    assert sorted(found) == [(n, f"left{n}", f"right{n}") for n in (1, 2, 3)]
