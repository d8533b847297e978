"""Start files, and what a pipeline is given from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from floodmark.engine.pipelines.start_positions import Start, parse_start, read_start
from floodmark.errors import MalformedFile, WrongUse


def start_of(*sources: dict[str, Any]) -> Start:
    return parse_start(
        json.dumps({"floodmark": "start", "version": 1, "sources": sources}).encode(), "start.json"
    )


def test_without_a_start_file_a_stream_begins_where_its_code_says() -> None:
    assert Start().kafka("orders") == "earliest"
    assert Start().kafka("orders", otherwise="latest") == "latest"
    assert Start().delta("data/orders") == {}
    assert Start().delta(otherwise="latest") == {"startingVersion": "latest"}


def test_kafka_begins_at_the_offsets_handed_over() -> None:
    start = start_of({"kind": "kafka", "offsets": {"orders": {"0": 416, "1": 563}, "x": {"0": 1}}})
    assert json.loads(start.kafka("orders")) == {"orders": {"0": 416, "1": 563}}
    assert json.loads(start.kafka("orders", "x")) == {"orders": {"0": 416, "1": 563}, "x": {"0": 1}}
    assert start.kafka("returns", otherwise="latest") == "latest"


def test_topics_of_one_stream_are_handed_over_together_or_not_at_all() -> None:
    start = start_of({"kind": "kafka", "offsets": {"orders": {"0": 416}}})
    with pytest.raises(WrongUse, match="not for returns"):
        start.kafka("orders", "returns")


def test_what_the_offsets_verb_prints_is_a_start_file() -> None:
    assert json.loads(parse_start(b'{"orders":{"0":416}}').kafka("orders")) == {
        "orders": {"0": 416}
    }
    assert parse_start(b'{"startingVersion": 7, "index": -1}').delta() == {"startingVersion": "7"}


def test_delta_begins_at_a_whole_version() -> None:
    start = start_of(
        {"kind": "delta", "table": "a", "version": 8}, {"kind": "delta", "table": "b", "version": 3}
    )
    assert start.delta("b") == {"startingVersion": "3"}
    with pytest.raises(WrongUse, match="2 Delta sources fit"):
        start.delta()
    inside = start_of({"kind": "delta", "version": 8, "index": 4})
    with pytest.raises(WrongUse, match="inside version 8"):
        inside.delta("a")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"orders": {"0": "416"}}',
        b'{"floodmark": "start", "version": 2, "sources": []}',
        b'{"floodmark": "start", "version": 1}',
        b'{"floodmark": "start", "version": 1, "sources": [7]}',
        b'{"floodmark": "start", "version": 1, "sources": [{"kind": "kinesis"}]}',
        b'{"floodmark": "start", "version": 1, "sources": [{"kind": "kafka"}]}',
        b'{"floodmark": "start", "version": 1, "sources": [{"kind": "delta", "version": "8"}]}',
        b'{"floodmark": "start", "version": 1, "sources": [{"kind": "delta", "version": -1}]}',
    ],
)
def test_anything_else_is_no_start_file(data: bytes) -> None:
    with pytest.raises(MalformedFile, match="not a start file"):
        parse_start(data)


def test_a_start_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="cannot read the start file"):
        read_start(tmp_path / "none.json")
