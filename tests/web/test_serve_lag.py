"""`serve` asks a real Kafka how far behind a stream is, and keeps its consumer group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import samples
from floodmark.connectors.kafka.admin import Admin
from floodmark.connectors.kafka.consumer_group import AdminGroups
from patience import wait_until
from served import serving

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = pytest.mark.services


def test_lag_retention_and_groups(
    kafka: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floodmark.api.serving.LAG_EVERY", 0.5)
    topic = kafka.create_topic("served", partitions=2)
    kafka.produce(topic, [str(number) for number in range(30)])
    offset = f'{{"{topic}":{{"0":10,"1":12}}}}'
    samples.write(tmp_path / "orders", samples.logs(range(4), range(4), offset=lambda _: offset))
    samples.write(tmp_path / "files", samples.file_stream())
    groups = AdminGroups(Admin(kafka.bootstrap, {}, 15.0))
    with serving(
        tmp_path, bootstrap_servers=kafka.bootstrap, commit_to_group="seen-{name}"
    ) as server:
        cards = server.wait_for(
            lambda cards: len(cards) == 2 and cards["orders"]["lag"]["records"] is not None
        )
        assert cards["orders"]["lag"]["records"] == 8
        held = {place: one.offset for place, one in groups.held("seen-orders").items()}
        assert held == {(topic, 0): 10, (topic, 1): 12}
        assert groups.held("seen-files") == {}
        address = f"/api/checkpoints/{cards['orders']['id']}"
        parts = server.get(address).json["lag"]["sources"][0]["parts"]
        assert {part["part"]: part["end"] for part in parts} == {f"{topic}/0": 15, f"{topic}/1": 15}
        assert f'partition="{topic}/0"' in server.get("/metrics").body.decode()

        # Retention removes what the stream has not read.
        kafka.drop_before(topic, 0, 13)
        told = wait_until(lambda: _lost(server.get(address).json["overtaking"]))
        assert told["lost"] == 3
        assert f"3 records of {topic}/0" in told["words"]


def _lost(told: Any) -> Any:
    return told if told and told["lost"] else None
