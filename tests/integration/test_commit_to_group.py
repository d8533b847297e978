"""Offsets written into a consumer group are what Kafka's own command shows, and harm nobody."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
import samples
from floodmark.cli.main import run
from floodmark.errors import Refused, WrongUse

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = pytest.mark.services


def stream(folder: Path, *sources: dict[str, dict[int, int]], query_id: str = "q-1") -> str:
    lines = [json.dumps(one, separators=(",", ":")) for one in sources]
    tree = samples.logs(range(2), range(2))
    tree |= {f"offsets/{batch}": samples.offset_entry(batch, *lines) for batch in range(2)}
    tree["metadata"] = json.dumps({"id": query_id}).encode()
    return str(samples.write(folder, tree))


def described(fetched: ModuleType, kafka: KafkaServer, group: str) -> dict[str, tuple[str, ...]]:
    """Topic/partition → (committed, end, lag) of `kafka-consumer-groups --describe`."""
    from services.kafka import consumer_groups

    asked = ("--bootstrap-server", kafka.bootstrap, "--describe", "--group", group)
    lines = consumer_groups(fetched.kafka_tools(), *asked).splitlines()
    rows = [line.split() for line in lines if line.startswith(group)]
    return {f"{row[1]}/{row[2]}": tuple(row[3:6]) for row in rows}


def test_kafka_consumer_groups_shows_the_same_lag(
    kafka: KafkaServer, fetched: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = kafka.create_topic("orders", partitions=3)
    kafka.produce(topic, [b"%d" % n for n in range(30)])
    kafka.drop_before(topic, 2, 4)
    place = stream(tmp_path / "cp", {topic: {0: 4, 1: 10, 2: 1}})
    group = f"floodmark-{topic}"
    given = ["lag", place, "--kafka", kafka.bootstrap, "--commit-to-group", group]
    assert run(given) == 0
    assert f"3 offsets committed to group {group}" in capsys.readouterr().out
    assert run([*given, "--json"]) == 0  # once more: the group is ours
    found = json.loads(capsys.readouterr().out)
    assert found["committed_group"]["offsets"] == {topic: {"0": 4, "1": 10, "2": 1}}
    ours = {
        part["part"]: (str(part["position"]), str(part["end"]), str(part["records"]))
        for part in found["sources"][0]["parts"]
    }
    assert ours == described(fetched, kafka, group)


def test_a_self_join_commits_what_is_further_behind(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, [b"%d" % n for n in range(9)])
    place = stream(tmp_path / "cp", {topic: {0: 7}}, {topic: {0: 5}})
    found = floodmark.lag(
        place, bootstrap_servers=kafka.bootstrap, commit_to_group=f"self-join-{topic}"
    )
    assert found.committed_group is not None
    assert found.committed_group.offsets == {topic: {"0": 5}}


def test_a_group_with_members_is_refused(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from confluent_kafka import Consumer

    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, [b"a"])
    group = f"members-{topic}"
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "client.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        assert consumer.poll(30) is not None
        place = stream(tmp_path / "cp", {topic: {0: 1}})
        given = ["lag", place, "--kafka", kafka.bootstrap, "--commit-to-group", group]
        assert run(given) == 4
        error = capsys.readouterr().err
        assert f"group {group} at {kafka.bootstrap} has 1 member: billing at" in error
    finally:
        consumer.close()


def test_offsets_of_another_application_are_not_overwritten(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = kafka.create_topic(partitions=1)
    group = f"stopped-{topic}"
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    place = stream(tmp_path / "cp", {topic: {0: 1}})

    def commit(cp: str, name: str) -> Any:
        return floodmark.lag(cp, bootstrap_servers=kafka.bootstrap, commit_to_group=name)

    with pytest.raises(Refused, match="was not committed for this stream"):
        commit(place, group)
    assert commit(place, f"own-{topic}").committed_group is not None
    other = stream(tmp_path / "other", {topic: {0: 1}}, query_id="q-2")
    with pytest.raises(Refused, match=r"belongs to another stream \(q-1\)"):
        commit(other, f"own-{topic}")


def test_wrong_use(kafka: KafkaServer, tmp_path: Path) -> None:
    place = stream(tmp_path / "cp", {"orders": {0: 1}})
    assert run(["lag", place, "--commit-to-group", "g"]) == 2
    assert run(["lag", place, "--kafka", kafka.bootstrap, "--commit-to-group", ""]) == 2
    with pytest.raises(WrongUse, match="not a valid name of a group"):
        floodmark.lag(place, bootstrap_servers=kafka.bootstrap, commit_to_group="x" * 10_000)
    files = str(samples.write(tmp_path / "files", samples.file_stream()))
    assert run(["lag", files, "--kafka", kafka.bootstrap, "--commit-to-group", "g"]) == 1
    silent = ["--kafka", "127.0.0.1:1", "--commit-to-group", "g", "--timeout", "1"]
    assert run(["lag", place, *silent]) == 3
