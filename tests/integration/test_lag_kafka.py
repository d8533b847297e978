"""`lag` against a real broker: the numbers are those of Kafka and of kafka-consumer-groups."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
import samples
from floodmark.cli.main import run
from patience import wait_until

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = pytest.mark.services


def stream(folder: Path, offsets: dict[str, dict[int, int]]) -> str:
    """A checkpoint whose last finished batch ends at these offsets."""
    line = json.dumps(offsets, separators=(",", ":"))
    tree = samples.logs(range(2), range(2), offset=lambda batch: line)
    return str(samples.write(folder / "cp", tree))


def asked(place: str, kafka: KafkaServer, **more: Any) -> Any:
    [source] = floodmark.lag(place, bootstrap_servers=kafka.bootstrap, **more).sources
    return source


def test_lag_is_what_the_broker_has_beyond_the_last_commit(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    began = time.time()
    topic = kafka.create_topic(partitions=3, retention_ms="3600000")
    kafka.produce(topic, [b"%d" % n for n in range(30)])
    place = stream(tmp_path, {topic: {0: 4, 1: 10}})  # partition 2 is new to the stream
    source = asked(place, kafka, timeout=300)
    assert source.error is None
    assert [(one.part, one.position, one.end, one.earliest) for one in source.parts] == [
        (f"{topic}/0", 4, 10, 0),
        (f"{topic}/1", 10, 10, 0),
        (f"{topic}/2", 0, 10, 0),
    ]
    assert [one.records for one in source.parts] == [6, 0, 10]
    assert (source.behind.records, source.lost) == (16, 0)
    # All of them were looked at: those from the fifth on in the first partition, and the third.
    unread = [n for n in range(12, 30) if n % 3 == 0] + [n for n in range(30) if n % 3 == 2]
    assert source.behind.bytes == sum(len(b"%d" % n) for n in unread)
    assert not source.behind.bytes_estimated
    longest_ms = (time.time() - began) * 1000
    assert 0 < source.behind.ms <= longest_ms
    assert source.parts[1].ms == 0
    # Nothing of what is unread is older than this test.
    assert 3_600_000 - longest_ms <= source.retention_left_ms < 3_600_000
    assert source.parts[1].retention_left_ms == 3_600_000
    assert any("Bytes count keys" in note for note in source.notes)
    assert any("1 partition that the stream has not read" in note for note in source.notes)


def test_bytes_are_estimated_by_the_first_records_that_are_not_read(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, [b"x" * 100] * 400)
    place = stream(tmp_path, {topic: {0: 50, 1: 200}})
    source = asked(place, kafka)
    assert source.behind.records == 150
    assert (source.behind.bytes, source.behind.bytes_estimated) == (15_000, True)
    assert [part.bytes for part in source.parts] == [15_000, 0]
    assert "estimated from the first 20 records" in source.notes[0]
    assert run(["lag", place, "--kafka", kafka.bootstrap]) == 0
    assert "behind: 150 records, about 15 kB, the oldest" in capsys.readouterr().out


def test_large_records_are_not_fetched_for_their_size(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, [b"x" * 200_000] * 10)
    source = asked(stream(tmp_path, {topic: {0: 0}}), kafka)
    assert source.behind.bytes == 2_000_000
    assert "estimated from the first record" in source.notes[0]


def test_an_open_transaction_counts_as_the_stream_reads_it(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    """To the end as Spark and Kafka's tools count, or to where committed records end; it is said
    which.
    """
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, [b"a", b"b"])
    place = stream(tmp_path / "behind", {topic: {0: 1}})
    beyond = stream(tmp_path / "beyond", {topic: {0: 4}})
    with kafka.open_transaction(topic, [b"c", b"d"]):
        source = asked(place, kafka)
        assert (source.behind.records, source.parts[0].end) == (3, 4)
        opened = f"Transactions are open in {topic} partition 0 from offset 2. Lag is counted "
        assert any(f"{opened}to the ends of the partitions" in note for note in source.notes)
        assert asked(beyond, kafka).behind.records == 0

        note = {"sources": [{"options": {"kafka.isolation.level": "read_committed"}}]}
        for folder in (place, beyond):
            samples.write(Path(folder), {"_floodmark/starts/0.json": json.dumps(note).encode()})
        source = asked(place, kafka)
        assert (source.behind.records, source.parts[0].end) == (1, 2)
        assert any(f"{opened}up to them, because the stream reads" in note for note in source.notes)
        source = asked(beyond, kafka)  # it read all records once: nothing of it is lost
        assert (source.behind.records, source.lost) == (0, 0)
        assert not any("made anew" in note or "recreated" in note for note in source.notes)
    # The broker writes the end of a transaction a moment after it has answered.
    wait_until(lambda: not any("Transactions" in note for note in asked(place, kafka).notes))


def test_records_that_are_gone_a_topic_that_is_gone_and_one_made_anew(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, [b"%d" % n for n in range(20)])
    kafka.drop_before(topic, 0, 7)
    place = stream(tmp_path, {topic: {0: 5, 1: 99}, "never-made": {0: 1}})
    source = asked(place, kafka)
    by_part = {one.part: one for one in source.parts}
    assert by_part[f"{topic}/0"].lost == 2
    assert by_part[f"{topic}/0"].records == 5  # as kafka-consumer-groups counts
    assert by_part[f"{topic}/1"].records is None
    assert by_part["never-made/0"].end is None
    assert source.behind.records is None  # a part is not known, so the sum is not
    words = " ".join(source.notes)
    assert "Topic never-made does not exist" in words
    assert "partition 1 ends at 10 (with open transactions), before offset 99" in words


def test_names_and_numbers_that_no_kafka_has(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic(partitions=1)
    wild = {topic: {0: 0}, "": {0: 1}, "a b\x1b": {0: 1}, "ü" * 300: {0: 1}}
    for numbers in ({9_999_999_999: 1}, {0: 2**70}):  # more than an int, more than a long
        place = stream(tmp_path / str(len(numbers)), {topic: {1: 1}, "b": numbers})
        assert floodmark.inspect(place).sources[0].kind == "unknown"
    place = stream(tmp_path, wild)
    source = asked(place, kafka)
    assert source.error is None
    assert {one.part: one.records for one in source.parts}[f"{topic}/0"] == 0
    assert source.behind.records is None
    given = ["lag", place, "--kafka", kafka.bootstrap, "--commit-to-group", f"wild-{topic}"]
    assert run(given) == 3


def test_retention_by_size_and_compaction_are_said(kafka: KafkaServer, tmp_path: Path) -> None:
    topic = kafka.create_topic(partitions=1, retention_bytes="1000000")
    other = kafka.create_topic(partitions=1, cleanup_policy="compact")
    source = asked(stream(tmp_path, {topic: {0: 0}, other: {0: 0}}), kafka)
    words = " ".join(source.notes)
    assert f"{topic} also removes records by size" in words
    assert f"{other} is compacted" in words
    assert [one.retention_left_ms for one in source.parts if one.part == f"{other}/0"] == [None]


def test_the_command_says_it_in_words_and_as_the_contract_has_it(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = kafka.create_topic("orders", partitions=1)
    kafka.produce(topic, [b"%d" % n for n in range(12)])
    place = stream(tmp_path, {topic: {0: 4}})
    assert run(["lag", place, "--kafka", kafka.bootstrap]) == 0
    shown = capsys.readouterr().out
    assert "behind: 8 records, 10 bytes, the oldest" in shown
    assert "retention keeps them for at least 6 days 23 h" in shown
    read = stream(tmp_path / "read", {topic: {0: 12}})
    assert run(["lag", read, "--kafka", kafka.bootstrap]) == 0
    shown = capsys.readouterr().out
    assert "not behind: everything is read" in shown
    assert "new records stay for at least 7 days" in shown
    assert run(["lag", place, "--kafka", kafka.bootstrap, "--json"]) == 0
    [source] = json.loads(capsys.readouterr().out)["sources"]
    assert (source["id"], source["kind"]) == ("0", "kafka")
    assert source["behind"].keys() >= {"records", "bytes", "ms"}
    [part] = source["parts"]
    assert part | {"part": f"{topic}/0", "position": 4, "end": 12, "earliest": 0} == part


def test_a_client_setting_that_kafka_does_not_know_is_said(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = stream(tmp_path, {"orders": {0: 4}})
    config = tmp_path / "client.properties"
    config.write_text("# how we log in\nssl.truststore.location=/x.jks\n")
    given = ["lag", place, "--kafka", kafka.bootstrap, "--kafka-config", str(config)]
    assert run(given) == 3
    assert "refuses the settings" in capsys.readouterr().out
    config.write_text("no equals sign\n")
    assert run(given) == 2
    assert "line 1: not KEY=VALUE" in capsys.readouterr().err
    assert run([*given[:-1], str(tmp_path / "absent")]) == 3
    assert "No such file" in capsys.readouterr().err


def test_a_broker_that_wants_a_login(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from services.kafka import LOGIN_PASSWORD, PLAIN_LOGIN

    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, [b"a", b"b", b"c"])
    place = stream(tmp_path, {topic: {0: 1}})
    config = tmp_path / "client.properties"

    def logged_in(password: str) -> int:
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={PLAIN_LOGIN} username="ann" password="{password}";\n'
        )
        options = ["--kafka-config", str(config), "--timeout", "2"]
        return run(["lag", place, "--kafka", kafka.guarded, *options])

    assert logged_in(LOGIN_PASSWORD) == 0
    assert "behind: 2 records, 2 bytes, the oldest" in capsys.readouterr().out
    assert logged_in("wr0ng-pa55word") == 3
    said = "".join(capsys.readouterr())
    assert "does not answer within 2 s" in said
    assert "SASL authentication error" in said
    assert "--kafka-config" in said
    assert "wr0ng-pa55word" not in said
    # Settings go to no broker but the one that the user names.
    note = {"sources": [{"options": {"kafka.bootstrap.servers": kafka.guarded}}]}
    samples.write(Path(place), {"_floodmark/starts/0.json": json.dumps(note).encode()})
    noted = ["lag", place, "--sources", "--kafka-config", str(config), "--timeout", "1"]
    assert run(noted) == 3
