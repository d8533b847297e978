from __future__ import annotations

import pytest

from floodmark.connectors.delta.offset import DeltaOffset, parse_delta_offset
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.kafka.offset import (
    parse_kafka_initial,
    parse_kafka_offset,
    render_kafka_initial,
)
from floodmark.connectors.rate import parse_rate_initial
from floodmark.connectors.registry import read_source_offset
from floodmark.connectors.source import parse_offset_text, render_json
from floodmark.errors import MalformedFile, UnknownVersion

DELTA = (
    '{"sourceVersion":1,"reservoirId":"4c","reservoirVersion":7,"index":-1,'
    '"isStartingVersion":false}'
)
KINESIS_QUBOLE = (
    '{"metadata":{"streamName":"s","batchId":"7"},"shardId-000000000000":'
    '{"iteratorType":"AFTER_SEQUENCE_NUMBER","iteratorPosition":"4960"}}'
)
KINESIS_AWS = (
    '{"metadata":{"streamName":"s","batchId":"7"},"shardId-000000000000":'
    '{"iteratorType":"SHARD_END","iteratorPosition":"","subSequenceNumber":"-1","isLast":"true"}}'
)
KINESIS_DATABRICKS = (
    '[{"shard":{"stream":"s","shardId":"shardId-0"},"firstSeqNum":null,"lastSeqNum":"4960",'
    '"closed":false,"msBehindLatest":"0"}]'
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"orders":{"0":23,"1":41},"clicks":{"0":0}}', "kafka"),
        ('{"logOffset":12}', "file"),
        (DELTA, "delta"),
        ('{"offset":10,"timestamp":1000}', "rate"),
        ('{"0":{"value":7,"runTimeMs":1},"1":{"value":6,"runTimeMs":1}}', "rate"),
        (KINESIS_QUBOLE, "kinesis"),
        (KINESIS_AWS, "kinesis"),
        (KINESIS_DATABRICKS, "kinesis"),
        ('{"eh":{"0":23,"1":-1}}', "eventhubs"),
        # PySpark writes json.dumps(offset): with spaces, as nothing of the JVM does.
        ('{"pos": 2, "tag": "x y"}', "python"),
        ('{"offset": {"0": 5}}', "python"),
        ('{"offset": 5, "timestamp": 3}', "python"),
        ('["a", "b"]', "python"),
        ('{"offset":"five","timestamp":3}', "unknown"),
        # By hand or by a script: fields that are nobody else's stay what they are.
        ('{"logOffset": 12}', "python"),  # but for this one, which `repair` would make a list for
        ('{"seqNum":234,"sourceVersion":1,"lastBackfillStartTimeMs":1}', "auto-loader"),
        (
            '{"seqNum":234,"sourceVersion":3,"lastInputPath":"abfss://x@y/z"}',
            "auto-loader",
        ),
        (
            '{"version":1,"snapshot_id":123,"position":0,"scan_all_files":false}',
            "iceberg",
        ),
        ('{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":true}', "iceberg"),
        ('{"commitTime":"20261116054001000"}', "hudi"),
        ('{"offsetCommitTime":"20261116054001000"}', "hudi"),
        ('{"snapshotId":5,"index":1,"scanSnapshot":false}', "paimon"),
        (
            '{"snapshotId":5,"index":1,"scanSnapshot":false,"totalSplits":2}',
            "paimon",
        ),
        (
            '{"sourceVersion":1,"tableId":"4c","tableVersion":7,"index":-1,'
            '"isStartingVersion":false}',
            "delta-sharing",
        ),
        (
            '{"activeSourceName":"a","allSourceNames":["a"],"completedSourceNames":[]}',
            "unknown",
        ),
        ("{}", "unknown"),
        ("[]", "unknown"),
        ("[1,2]", "unknown"),
        ('"a text"', "unknown"),
        ("not JSON at all", "unknown"),
        ("null", "unknown"),
        ("true", "unknown"),
        ('{"orders":{"zero":1}}', "unknown"),
        ('{"orders":{"0":1.5}}', "unknown"),
        ('{"orders":{"%s":1}}' % ("9" * 5000), "unknown"),
        ("12", "memory"),
        ("-1", "memory"),
    ],
)
def test_the_kind_is_read_from_the_offsets_shape(text: str, kind: str) -> None:
    found = read_source_offset("0", text)
    assert found.kind == kind
    assert found.text == text, "an offset's text is kept verbatim"


@pytest.mark.parametrize(
    ("initial", "kind"),
    [
        (b"v1\n1700000000000", "rate"),
        (b'v1\n{"path":"/a/b/0","timestamp":1,"batchId":0}', "file"),
        (b"v1\nsomething else", "unknown"),
    ],
)
def test_a_bare_number_is_told_by_what_the_source_left(initial: bytes, kind: str) -> None:
    assert read_source_offset("0", "12", initial).kind == kind
    assert read_source_offset("0", None, initial).kind == kind


@pytest.mark.parametrize("initial", [b'\0v1\n{"t":{"0":1}}', b'\x0d{"t":{"0":1}}'])
def test_kafka_never_writes_a_bare_number(initial: bytes) -> None:
    assert read_source_offset("0", None, initial).kind == "kafka"
    assert read_source_offset("0", "12", initial).kind == "unknown"


def test_kafkas_own_start_tells_an_edited_offset_from_pythons() -> None:
    edited = '{"t": {"0": 12}}'
    assert read_source_offset("0", edited, b'\0v1\n{"t":{"0":1}}').kind == "kafka"
    assert read_source_offset("0", edited).kind == "python"


def test_no_offset_yet() -> None:
    found = read_source_offset("orders", None)
    assert (found.id, found.kind, found.offset, found.text) == (
        "orders",
        "unknown",
        None,
        None,
    )


def test_a_damaged_offset_is_said() -> None:
    for text in ('{"a":}', "[1,", '{"a" 1}'):
        with pytest.raises(MalformedFile, match="offset is not JSON"):
            parse_offset_text(text)


def test_what_json_cannot_say_comes_out_as_text() -> None:
    # Python's json.dumps, which writes the Python source's offsets, knows NaN; JSON does not.
    assert parse_offset_text('{"a": NaN, "b": -Infinity}') == {"a": "NaN", "b": "-Infinity"}


def test_kafka() -> None:
    assert parse_kafka_offset({"a": {"10": 3, "2": 0}, "b": {}}) == {"a": {10: 3, 2: 0}, "b": {}}
    for wrong in ([], 7, None, {"a": 1}, {"a": {"x": 1}}, {"a": {"0": "1"}}, {"a": {"0": True}}):
        with pytest.raises(MalformedFile, match="not a Kafka offset"):
            parse_kafka_offset(wrong)


@pytest.mark.parametrize(
    ("data", "lead", "line"),
    [
        (b'\x0d{"t":{"0":1}}', b"\x0d", None),  # 2.1.0: the JSON's length
        (b'\0v1\n{"t":{"0":1}}', b"\0", "v1"),  # since 2.1.1
        (b'0v1\n{"t":{"0":1}}', b"0", "v1"),
        (b'\0{"t":{"0":1}}', b"\0", None),
        (b'\0v1\n{"t": {"0": 1}}\n', b"\0", "v1"),
    ],
)
def test_kafkas_initial_offset(data: bytes, lead: bytes, line: str | None) -> None:
    initial = parse_kafka_initial(data)
    assert (initial.lead, initial.version_line) == (lead, line)
    assert initial.offset == {"t": {0: 1}}
    assert render_kafka_initial(initial) == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\0", "not JSON"),
        (b"\0v1", "not JSON"),
        (b"\0v1\n[]", "not a JSON object"),
        (b'\0v1\n{"t":1}', "not a Kafka offset"),
        (b"\0vx\n{}", "not a version"),
        (b"\0v1\n\xff", "not UTF-8"),
    ],
)
def test_kafkas_initial_offset_damaged(data: bytes, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_kafka_initial(data)


def test_kafkas_initial_offset_of_a_newer_spark() -> None:
    with pytest.raises(UnknownVersion, match="'v2'; this floodmark reads up to 'v1'"):
        parse_kafka_initial(b"\0v2\n{}")


@pytest.mark.parametrize("index", [-1, -100, -20, -19, 0, 41])
@pytest.mark.parametrize("source_version", [1, 3])
def test_delta(index: int, source_version: int) -> None:
    fields = {
        "sourceVersion": source_version,
        "reservoirId": "4c",
        "reservoirVersion": 7,
        "index": index,
        "isStartingVersion": index == 41,
    }
    assert parse_delta_offset(fields) == DeltaOffset("4c", 7, index, index == 41, source_version)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "not a Delta offset"),
        ({"reservoirId": 4}, "not a Delta offset"),
        ({"reservoirId": "4c"}, "sourceVersion"),
        ({"reservoirId": "4c", "sourceVersion": 2}, "sourceVersion 2"),
        (
            {"reservoirId": "4c", "sourceVersion": 4},
            "sourceVersion 4; this floodmark reads 1 and 3",
        ),
        ({"reservoirId": "4c", "sourceVersion": 1, "reservoirVersion": "7"}, "reservoirVersion"),
        ({"reservoirId": "4c", "sourceVersion": 1, "reservoirVersion": 7}, "index"),
    ],
)
def test_delta_damaged(fields: object, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_delta_offset(fields)


def test_the_file_sources_offset() -> None:
    assert parse_log_offset({"logOffset": 345}) == 345
    assert parse_log_offset(345) == 345
    for wrong in ("345", None, {}, {"logOffset": "3"}):
        with pytest.raises(MalformedFile):
            parse_log_offset(wrong)


def test_when_the_rate_source_was_created() -> None:
    assert parse_rate_initial(b"v1\n1700000000000") == 1_700_000_000_000
    assert parse_rate_initial(b"v1\n1700000000000\n") == 1_700_000_000_000
    for wrong in (b"v1\n", b"v1\nsoon", b"", b"1700", "v1\n٣".encode(), b"v1\n" + b"9" * 5000):
        with pytest.raises(MalformedFile):
            parse_rate_initial(wrong)


def test_json_as_spark_spaces_it() -> None:
    assert render_json({"ä": {"0": 1}}) == '{"ä":{"0":1}}'
