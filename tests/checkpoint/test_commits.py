from __future__ import annotations

import pytest

from floodmark.checkpoint.commits import parse_commit, render_commit
from floodmark.errors import MalformedFile, UnknownVersion

V2_JOIN = (
    b'v2\n{"nextBatchWatermarkMs":10,"stateUniqueIds":'
    b'{"0":[["a","b","c","d"],["e","f","g","h"]],"1":[["i"],["j"]]}}'
)
V3 = (
    b'v3\n{"nextBatchWatermarkMs":0,"sinkMetadataMap":{'
    b'"snkA":{"sinkName":"snkA","commitOffset":"-","apiVersion":"DSv2","isActive":false},'
    b'"snkB":{"sinkName":"snkB","commitOffset":"-","apiVersion":"DSv1","isActive":true}}}'
)
SAMPLES = [
    b"v1\n{}",
    b"v1",
    b"v1\n",
    b'v1\n{"nextBatchWatermarkMs":5000}',
    b'v1\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}',
    b'v1\n{"nextBatchWatermarkMs":5000}\n',
    b'v1\r\n{"nextBatchWatermarkMs":5000}\r\n',
    b'v1\n{"nextBatchWatermarkMs":5000}\njunk that Spark does not read',
    b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}',
    V2_JOIN,
    V3,
]


@pytest.mark.parametrize("data", SAMPLES)
def test_rendered_byte_for_byte(data: bytes) -> None:
    assert render_commit(parse_commit(data)) == data


@pytest.mark.parametrize("data", [b"v1\n{}", b"v1", b"v1\n", b"v1\n  "])
def test_an_empty_body_means_no_watermark(data: bytes) -> None:
    entry = parse_commit(data)
    assert (entry.version, entry.next_batch_watermark_ms) == (1, 0)
    assert dict(entry.state_unique_ids) == {}
    assert dict(entry.sinks) == {}


@pytest.mark.parametrize("data", [d for d in SAMPLES if b":5000}" in d])
def test_the_watermark_of_the_next_batch(data: bytes) -> None:
    assert parse_commit(data).next_batch_watermark_ms == 5000


def test_v2_names_each_stores_files() -> None:
    entry = parse_commit(V2_JOIN)
    assert (entry.version, entry.next_batch_watermark_ms) == (2, 10)
    assert entry.state_unique_ids == {
        0: (("a", "b", "c", "d"), ("e", "f", "g", "h")),
        1: (("i",), ("j",)),
    }


def test_v3_names_the_sinks() -> None:
    entry = parse_commit(V3)
    assert entry.version == 3
    assert [name for name, sink in entry.sinks.items() if sink["isActive"]] == ["snkB"]
    assert dict(entry.state_unique_ids) == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b'v1\n{"nextBatchWa', "the commit is not JSON"),
        (b"v1\n7", "not a JSON object"),
        (b'v1\n{"nextBatchWatermarkMs":1.5}', "not a whole number"),
        (b'v1\n{"nextBatchWatermarkMs":true}', "not a whole number"),
        (b'v1\n{"nextBatchWatermarkMs":99999999999999999999}', "not a whole number"),
        (b'v2\n{"stateUniqueIds":[]}', "stateUniqueIds"),
        (b'v2\n{"stateUniqueIds":{"x":[["a"]]}}', "stateUniqueIds"),
        (b'v2\n{"stateUniqueIds":{"0":["a"]}}', "stateUniqueIds"),
        (b'v2\n{"stateUniqueIds":{"0":[[1]]}}', "stateUniqueIds"),
        (b'v3\n{"sinkMetadataMap":{"a":1}}', "sinkMetadataMap"),
        (b"commit", "not a version"),
        (b"v1\n\xff", "not UTF-8"),
        (b"v1\n" + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_damage_has_its_own_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_commit(data)


def test_a_newer_version_names_both() -> None:
    with pytest.raises(UnknownVersion, match="'v4'; this floodmark reads up to 'v3'"):
        parse_commit(b"v4\n{}")
