"""`doctor --sources` against a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import samples
from floodmark import api

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = pytest.mark.services


def stream(folder: Path, topic: str, offset: int) -> str:
    """A checkpoint that goes on at an offset of partition 0."""
    tree = samples.logs(range(2), range(2), offset=lambda batch: f'{{"{topic}":{{"0":{offset}}}}}')
    return str(samples.write(folder / f"cp-{offset}", tree))


def found(place: str, server: KafkaServer) -> list[tuple[str, str]]:
    findings = api.doctor(place, bootstrap_servers=server.bootstrap)
    return [(item.rule, item.what) for item in findings]


def test_a_broker_is_asked_for_its_bounds(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, [b"%d" % n for n in range(10)])
    assert found(stream(tmp_path, topic, 6), kafka) == []
    [(rule, what)] = found(stream(tmp_path, topic, 11), kafka)
    assert rule == "kafka-offset-out-of-range"
    assert "ends at 10" in what
    kafka.drop_before(topic, 0, 8)
    [(rule, what)] = found(stream(tmp_path, topic, 6), kafka)
    assert "2 records from offset 6 on are gone" in what
    [(rule, what)] = found(stream(tmp_path, "never-made", 6), kafka)
    assert "topic never-made does not exist" in what


def test_an_open_transaction_is_not_the_end_of_a_topic(kafka: KafkaServer, tmp_path: Path) -> None:
    """A stream that reads all records stands after those of the open transaction."""
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, [b"a", b"b"])
    with kafka.open_transaction(topic, [b"c", b"d", b"e"]):
        for offset in (2, 4, 5):
            place = stream(tmp_path, topic, offset)
            assert found(place, kafka) == []
            notes = api.upgrade(place, str(tmp_path / "new"), kafka=kafka.bootstrap).plan.notes
            assert any("still has everything that comes next" in note for note in notes)
        [(rule, what)] = found(stream(tmp_path, topic, 6), kafka)
        assert rule == "kafka-offset-out-of-range"
        assert "ends at 5 (with open transactions), before offset 6" in what
        kafka.drop_before(topic, 0, 2)  # no further than to the open transaction
        [(_, what)] = found(stream(tmp_path, topic, 1), kafka)
        assert "1 record from offset 1 on is gone" in what


def test_a_broker_that_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floodmark.connectors.kafka.live._PATIENCE_SECONDS", 1.0)
    place = stream(tmp_path, "orders", 6)
    findings = api.doctor(place, bootstrap_servers="127.0.0.1:1")
    assert [item.rule for item in findings] == ["source-not-asked"]
    assert "does not answer" in findings[0].what
