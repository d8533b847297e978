"""What a real broker no longer has, said before Spark dies of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark.engine.start.launch import start
from floodmark.errors import Refused

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = [pytest.mark.spark, pytest.mark.services]


def writer(spark: Any, servers: str, topic: str, **options: str) -> Any:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    rows = reader.options(**options).load()
    return rows.writeStream.format("noop").trigger(availableNow=True)


def run(made: Any, checkpoint: Path, **options: Any) -> Any:
    query = start(made, checkpoint, **options)
    assert query.awaitTermination(300)
    return query


def edit_offsets(checkpoint: Path, batch: int, offset: dict[str, dict[str, int]]) -> None:
    path = checkpoint / "offsets" / str(batch)
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:2], json.dumps(offset, separators=(",", ":"))]))
    (checkpoint / "offsets" / f".{batch}.crc").unlink(missing_ok=True)


def test_a_broker_that_is_not_there(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"Kafka at 127\.0\.0\.1:9 is not reachable") as error:
        start(writer(spark, "127.0.0.1:9", "orders"), tmp_path / "ck")
    assert "--allow kafka-unreachable" in error.value.do
    assert not (tmp_path / "ck").exists()


def test_a_topic_that_is_not_there(spark: Any, kafka: KafkaServer, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="has no topic 'no-such-topic'"):
        start(writer(spark, kafka.bootstrap, "no-such-topic"), tmp_path / "ck")
    assert not (tmp_path / "ck").exists()


def test_offsets_that_the_broker_does_not_have(
    spark: Any, kafka: KafkaServer, tmp_path: Path
) -> None:
    topic = kafka.create_topic("looks", partitions=2)
    kafka.produce(topic, [f"r{n}" for n in range(10)])
    checkpoint = tmp_path / "ck"
    made = writer(spark, kafka.bootstrap, topic)
    run(made, checkpoint)
    run(writer(spark, kafka.bootstrap, topic), checkpoint)  # as it stands it goes on

    edit_offsets(checkpoint, 0, {topic: {"0": 5, "1": 99}})
    with pytest.raises(Refused) as ahead:
        start(writer(spark, kafka.bootstrap, topic), checkpoint)
    assert f"at offset 99 of {topic}, partition 1, but Kafka's latest is 5" in ahead.value.what
    assert "--allow kafka-offset-ahead" in ahead.value.do

    edit_offsets(checkpoint, 0, {topic: {"0": 2, "1": 5}})
    kafka.drop_before(topic, 0, 4)
    with pytest.raises(Refused) as gone:
        start(writer(spark, kafka.bootstrap, topic), checkpoint)
    assert "from offset 2 on: its earliest is 4, so 2 records are gone" in gone.value.what
    assert "fails on its first batch" in gone.value.why
    with pytest.raises(Refused, match="2 records are gone") as silent:
        start(writer(spark, kafka.bootstrap, topic, failOnDataLoss="false"), checkpoint)
    assert "skips them silently" in silent.value.why
    query = run(
        writer(spark, kafka.bootstrap, topic, failOnDataLoss="false"),
        checkpoint,
        allow=["kafka-offset-gone"],
    )
    assert query.exception() is None
