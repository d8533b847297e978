"""Moved Kafka streams, on a real broker: renamed topics, retention, another cluster by time."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.sources.kafka_cluster import reach
from floodmark.checkpoint.live_answers import Bounds
from floodmark.connectors.kafka.live import Cluster
from floodmark.connectors.kafka.offset import parse_kafka_initial, parse_kafka_offset
from floodmark.errors import CannotRead, WouldLose, WrongUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from services.kafka import KafkaServer


def stream_at(topic: str, offsets: dict[int, int], time_ms: int) -> samples.Tree:
    """Two batches of one Kafka source; the second stands at the offsets, at that time."""
    place = ",".join(f'"{partition}":{at}' for partition, at in offsets.items())
    line = f'{{"{topic}":{{{place}}}}}'
    tree = samples.logs(range(2), range(2), lambda batch: line)
    for batch in range(2):
        stamp = str(samples.time_of(batch)).encode()
        path = f"offsets/{batch}"
        tree[path] = tree[path].replace(stamp, str(time_ms).encode())
    return tree


def test_what_is_out_of_reach_is_counted() -> None:
    found = reach(
        {"orders": {0: 5, 1: 9, 2: 1, 3: 4}},
        {"orders": {0: Bounds(8, 20), 1: Bounds(0, 3), 3: Bounds(0, 9), 4: Bounds(0, 1)}},
    )
    assert len(found.lost) == 3
    assert "3 records from offset 5 on are gone" in found.lost[0]
    assert "ends at 3 (with open transactions), before offset 9" in found.lost[1]
    assert "partition 2 is gone" in found.lost[2]
    assert "new partitions (4)" in found.notes[0]


@pytest.mark.services
def test_retention_that_has_passed_is_said_before(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic("orders")
    kafka.produce(topic, [str(number) for number in range(20)])
    kafka.drop_before(topic, 0, 7)
    samples.write(tmp_path / "cp", stream_at(topic, {0: 3, 1: 4}, 1))
    with pytest.raises(WouldLose, match="4 records are out of reach") as refused:
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), kafka=kafka.bootstrap)
    assert "partition 0: 4 records from offset 3" in refused.value.why
    change = api.upgrade(
        str(tmp_path / "cp"),
        str(tmp_path / "new"),
        kafka=kafka.bootstrap,
        accept=["out-of-reach"],
    )
    (note,) = [note for note in change.plan.notes if "OUT OF REACH" in note]
    assert "partition 0: 4 records from offset 3" in note


@pytest.mark.services
def test_a_time_before_the_log_is_found_in_kafkas_index(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic("orders", partitions=2)
    kafka.produce(topic, ["before"] * 6)
    time.sleep(0.05)  # records carry milliseconds: the next ones must be later than the time
    moment = datetime.now(timezone.utc)
    time.sleep(0.05)
    kafka.produce(topic, ["after"] * 4)
    tree = stream_at(topic, {0: 5, 1: 5}, int(time.time() * 1000) + 60_000)
    purged = {path.replace("/1", "/8").replace("/0", "/7"): data for path, data in tree.items()}
    samples.write(tmp_path / "cp", purged)
    api.rewind(str(tmp_path / "cp"), to_time=moment, kafka=kafka.bootstrap, carrying=GO)
    found = api.offsets(str(tmp_path / "cp")).sources[0].offset
    assert found == {topic: {"0": 3, "1": 3}}


@pytest.mark.services
def test_another_cluster_by_time(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic("mirror")
    kafka.produce(topic, ["before"] * 6)
    time.sleep(0.05)  # records carry milliseconds: the next ones must be later than the batch
    moment = int(time.time() * 1000)
    kafka.produce(topic, ["after"] * 4)
    samples.write(tmp_path / "cp", stream_at("orders", {0: 900, 1: 901}, moment))
    asked: dict[str, Any] = {
        "kafka": kafka.bootstrap,
        "by_time": True,
        "map_topic": [f"orders={topic}"],
    }
    with pytest.raises(WouldLose, match="the times of the records are not known") as refused:
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), **asked)
    assert "--old-kafka HOST:PORT" in refused.value.do
    change = api.upgrade(
        str(tmp_path / "cp"), str(tmp_path / "new"), accept=["skips"], carrying=GO, **asked
    )
    assert any("ARE LEFT OUT" in note for note in change.plan.notes)
    found = api.offsets(str(tmp_path / "new")).sources[0].offset
    assert found == {topic: {"0": 3, "1": 3}}


@pytest.mark.services
@pytest.mark.parametrize("without_state", [False, True])
def test_a_lagging_streams_backlog_is_found_in_another_cluster(
    kafka: KafkaServer, tmp_path: Path, without_state: bool
) -> None:
    """One partition lags by far, the other is read to its end; the mirror begins elsewhere."""
    old, mirror = (kafka.create_topic(name, partitions=2) for name in ("orders", "mirror"))
    _produce_at(kafka, mirror, [("older", 1_000)] * 10)
    records = [(str(number), 2_000 + number) for number in range(100)]
    _produce_at(kafka, old, records)
    _produce_at(kafka, mirror, records)
    ends = {partition: bounds.end for partition, bounds in _bounds(kafka, old).items()}
    at = {0: 7, 1: ends[1]}
    samples.write(tmp_path / "cp", stream_at(old, at, int(time.time() * 1000) + 60_000))
    api.upgrade(
        str(tmp_path / "cp"),
        str(tmp_path / "new"),
        kafka=kafka.bootstrap,
        old_kafka=kafka.bootstrap,
        by_time=True,
        map_topic=[f"{old}={mirror}"],
        without_state=without_state,
        carrying=GO,
    )
    found = _begins(tmp_path / "new", mirror, without_state)
    values = {
        partition: _values(kafka, mirror, partition, offset) for partition, offset in found.items()
    }
    unread = _values(kafka, old, 0, at[0])
    assert set(unread) <= set(values[0])
    assert len(unread) == 43
    assert values[0] == unread
    assert values[1] == ["99"]  # the last that was read, whose time was asked for


def _produce_at(kafka: KafkaServer, topic: str, records: list[tuple[str, int]]) -> None:
    """Each record with its own time, in two partitions by turns."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, (value, time_ms) in enumerate(records):
        producer.produce(topic, value.encode(), partition=number % 2, timestamp=time_ms)
    assert producer.flush(60) == 0


def _bounds(kafka: KafkaServer, topic: str) -> dict[int, Bounds]:
    cluster = Cluster(kafka.bootstrap)
    try:
        return cluster.bounds(topic)
    finally:
        cluster.close()


def _begins(new: Path, topic: str, without_state: bool) -> dict[int, int]:
    if without_state:
        initial = parse_kafka_initial((new / "sources/0/0").read_bytes()).offset[topic]
        start = json.loads((new / "_floodmark/start.json").read_text())["sources"][0]
        assert start["offsets"][topic] == {str(key): value for key, value in initial.items()}
        return initial
    return parse_kafka_offset(api.offsets(str(new)).sources[0].offset)[topic]


def _values(kafka: KafkaServer, topic: str, partition: int, offset: int) -> list[str]:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "t", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, offset)])
    found = []
    for _ in range(1000):
        message = consumer.poll(10)
        if message is None or message.error():
            break
        found.append((message.value() or b"").decode())
    consumer.close()
    return found


@pytest.mark.services
def test_a_topic_that_the_other_cluster_has_not(kafka: KafkaServer, tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", stream_at("nowhere", {0: 1}, 1))
    with pytest.raises(WrongUse, match="has no topic nowhere"):
        api.upgrade(
            str(tmp_path / "cp"), str(tmp_path / "new"), kafka=kafka.bootstrap, by_time=True
        )
    with pytest.raises(WouldLose, match="out of reach") as refused:
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), kafka=kafka.bootstrap)
    assert "topic nowhere does not exist" in refused.value.why


def test_a_cluster_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.connectors.kafka.live._PATIENCE_SECONDS", 0.5)
    samples.write(tmp_path / "cp", samples.sales())
    with pytest.raises(CannotRead, match="does not answer"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), kafka="127.0.0.1:9")
    with pytest.raises(WrongUse, match="asks a cluster"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), by_time=True)


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
def test_an_upgraded_kafka_stream_reads_every_record_once(
    kafka: KafkaServer, spark: SparkSession, tmp_path: Path, stateful: bool
) -> None:
    topic = kafka.create_topic("orders")

    def run(checkpoint: Path, starting: str) -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
        frame: DataFrame = (
            reader.option("subscribe", topic)
            .option("startingOffsets", starting)
            .option("maxOffsetsPerTrigger", 10)
            .load()
            .selectExpr("cast(value as string) as value")
        )
        if stateful:
            frame = frame.groupBy("value").count()
        query = (
            frame.writeStream.format("delta")
            .outputMode("complete" if stateful else "append")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination(300)
        assert not query.isActive

    kafka.produce(topic, [f"r{number}" for number in range(30)])
    run(tmp_path / "cp", "earliest")
    last = api.inspect(str(tmp_path / "cp")).committed_batch
    (tmp_path / f"cp/commits/{last}").unlink()  # the sink has it, Spark does not know
    (tmp_path / f"cp/commits/.{last}.crc").unlink()
    api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), kafka=kafka.bootstrap, carrying=GO)
    kafka.produce(topic, [f"r{number}" for number in range(30, 45)])
    run(tmp_path / "new", "latest")
    found: list[Any] = [
        row.value for row in spark.read.format("delta").load(str(tmp_path / "out")).collect()
    ]
    assert sorted(found) == sorted(f"r{number}" for number in range(45))
