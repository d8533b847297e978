from __future__ import annotations

import pytest

from floodmark.checkpoint.offsets import parse_offsets, render_offsets, with_offset
from floodmark.errors import MalformedFile, UnknownVersion

CONF = '"conf":{"spark.sql.shuffle.partitions":"4"}'
V1 = (
    "v1\n"
    f'{{"batchWatermarkMs":5000,"batchTimestampMs":1700000000000,{CONF}}}\n'
    '{"orders":{"1":563,"0":416}}\n'
    "-\n"
    "12"
).encode()
WITHOUT_CONF = (
    b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1480981499528}\n'
    b'{"logOffset":345}\n{"topic-0":{"0":1}}'
)
CONTINUOUS = b'v1\n\n{"1":{"value":7,"runTimeMs":1700000000123}}'
V2 = (
    b'v2\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{"a":"b"},'
    b'"sourceMetadataInfo":{"0":{"sourceId":"0","providerName":"kafka","apiVersion":"v2"}}}\n'
    b'orders:{"logOffset":12}\nclicks:{"web":{"0":99}}\nidle:-\nurl:s3://a:b'
)
PYTHON_SOURCE = (
    b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1}\n{"pos": 2, "tag": "x  y", "z": [1, 2]}'
)
ODD_METADATA = b'v1\n{ "batchTimestampMs": 7, "later": {"a": [1]}, "conf": {"k": "v", "n": 4} }\n0'
SAMPLES = {
    "v1 with a null offset": V1,
    "2.1 without conf": WITHOUT_CONF,
    "continuous mode": CONTINUOUS,
    "v2 with names": V2,
    "python data source": PYTHON_SOURCE,
    "fields of a later version": ODD_METADATA,
    "a trailing line feed": V1 + b"\n",
    "continuous, trailing line feed": CONTINUOUS + b"\n",
    "no source at all": b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1}',
    "windows line ends": V1.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
def test_rendered_byte_for_byte(data: bytes) -> None:
    assert render_offsets(parse_offsets(data)) == data


def test_v1_is_by_position_and_a_dash_is_no_offset() -> None:
    entry = parse_offsets(V1)
    assert entry.version == 1
    assert entry.offsets == (
        ("0", '{"orders":{"1":563,"0":416}}'),
        ("1", None),
        ("2", "12"),
    )
    assert entry.metadata is not None
    assert entry.metadata.batch_watermark_ms == 5000
    assert entry.metadata.batch_timestamp_ms == 1_700_000_000_000
    assert dict(entry.metadata.conf) == {"spark.sql.shuffle.partitions": "4"}
    assert entry.of("2") == "12"
    assert entry.of("1") is None
    assert entry.of("9") is None


def test_2_1_has_no_conf() -> None:
    entry = parse_offsets(WITHOUT_CONF)
    assert entry.metadata is not None
    assert dict(entry.metadata.conf) == {}
    assert [name for name, _ in entry.offsets] == ["0", "1"]


def test_continuous_mode_has_no_metadata() -> None:
    entry = parse_offsets(CONTINUOUS)
    assert entry.metadata is None
    assert entry.offsets == (("0", '{"1":{"value":7,"runTimeMs":1700000000123}}'),)


def test_v2_names_end_at_the_first_colon() -> None:
    entry = parse_offsets(V2)
    assert entry.version == 2
    assert entry.offsets == (
        ("orders", '{"logOffset":12}'),
        ("clicks", '{"web":{"0":99}}'),
        ("idle", None),
        ("url", "s3://a:b"),
    )
    assert entry.metadata is not None
    assert "sourceMetadataInfo" in entry.metadata.text


def test_a_later_versions_metadata_is_kept_and_missing_fields_are_zero() -> None:
    entry = parse_offsets(ODD_METADATA)
    assert entry.metadata is not None
    assert entry.metadata.batch_watermark_ms == 0
    assert entry.metadata.batch_timestamp_ms == 7
    assert dict(entry.metadata.conf) == {"k": "v", "n": "4"}


def test_the_python_sources_spaces_are_kept() -> None:
    assert parse_offsets(PYTHON_SOURCE).of("0") == '{"pos": 2, "tag": "x  y", "z": [1, 2]}'


def test_windows_line_ends_are_no_part_of_an_offset() -> None:
    entry = parse_offsets(V1.replace(b"\n", b"\r\n"))
    assert entry.offsets == parse_offsets(V1).offsets


def test_one_source_moves_and_all_else_stays() -> None:
    moved = with_offset(parse_offsets(V2), "clicks", '{"web":{"0":100}}')
    assert render_offsets(moved) == V2.replace(b'"0":99', b'"0":100')
    emptied = with_offset(parse_offsets(V1), "0", None)
    assert render_offsets(emptied) == V1.replace(b'{"orders":{"1":563,"0":416}}', b"-")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"v1", "cut short"),
        (b"v1\n", "cut short"),
        (b'v1\n{"batchWatermarkMs":0,"batchTi', "metadata line is not JSON"),
        (b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":4', "source 0 is cut short"),
        (b'v1\n{"batchWatermarkMs":0}\n[{"shard":1}', "source 0 is cut short"),
        (b'v1\n{"batchWatermarkMs":"soon"}\n0', "not a whole number"),
        (b'v1\n{"batchWatermarkMs":0,"conf":[1]}\n0', "conf is not a JSON object"),
        (b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{"a" "b"}}\n0', "not JSON"),
        (b"v1\n[]\n0", "not a JSON object"),
        (b"v2\n\n0:1", "needs it"),
        (b"v2\n{}\n12", "no colon"),
        (b"one\n{}\n0", "not a version"),
        (b"v0\n{}\n0", "not a version"),
        (b"v\n{}\n0", "not a version"),
        ("v٣\n{}\n0".encode(), "not a version"),
        (b"\xff\xfe\n{}", "not UTF-8 text: byte 0 is 0xff"),
        (b"v1\n{}\n\xe2\x28", "not UTF-8 text: byte 6"),
    ],
)
def test_damage_has_its_own_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_offsets(data)


@pytest.mark.parametrize("version", ["v3", "v12", "v" + "9" * 5000])
def test_a_newer_version_names_both(version: str) -> None:
    with pytest.raises(UnknownVersion) as caught:
        parse_offsets(f"{version}\n{{}}\n0".encode())
    assert "reads up to 'v2'" in caught.value.what
    assert caught.value.what.startswith(f"format version '{version[:3]}"[:18])
    assert len(caught.value.what) < 200
