"""Every kind's golden strings: recognised, how surely, explained, and where a new stream starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import samples
from connectors.golden_offsets import GOLDEN, Golden
from floodmark.checkpoint.views.position import position
from floodmark.connectors.registry import (
    advance,
    kind_named,
    kinds,
    read_source_offset,
    recognise,
)
from floodmark.connectors.source import Traces, parse_offset_text
from floodmark.errors import MalformedFile
from floodmark.wire import dumps

CASES = [
    pytest.param(kind, one, id=f"{kind}-{at}")
    for kind, found in GOLDEN.items()
    for at, one in enumerate(found)
]


def test_every_kind_has_golden_strings() -> None:
    # A socket's offset is a memory stream's: nothing tells them apart.
    assert {kind.name for kind in kinds()} - GOLDEN.keys() == {"socket"}


@pytest.mark.parametrize(("kind", "golden"), CASES)
def test_it_is_recognised(kind: str, golden: Golden) -> None:
    offset = parse_offset_text(golden.text)
    found = recognise(Traces(offset, golden.text, golden.initial))
    assert found is not None
    assert (found.kind, found.sureness) == (kind, golden.sureness)
    assert found.why


@pytest.mark.parametrize(("kind", "golden"), CASES)
def test_no_other_kind_is_as_sure(kind: str, golden: Golden) -> None:
    traces = Traces(parse_offset_text(golden.text), golden.text, golden.initial)
    answers = [one for known in kinds() if (one := known.recognise(traces)) is not None]
    # The shortcut of the registry leaves nobody out who would have been surer.
    assert recognise(traces) == max(answers, key=lambda one: one.sureness)
    assert [one.kind for one in answers if one.sureness >= golden.sureness] == [kind]


@pytest.mark.parametrize(("kind", "golden"), CASES)
def test_it_is_explained(kind: str, golden: Golden) -> None:
    source = read_source_offset("0", golden.text, golden.initial)
    assert tuple(advance(source, None)) == golden.explained
    # From a place to the same place is that place.
    assert tuple(advance(source, source)) == golden.explained
    assert kind_named(kind).reached(source.offset)


@pytest.mark.parametrize(("kind", "golden"), CASES)
def test_where_a_new_stream_starts(kind: str, golden: Golden) -> None:
    checkpoint = samples.checkpoint(
        {"offsets/0": f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":1}}\n{golden.text}'.encode()}
    )
    initial = {} if golden.initial is None else {"0": golden.initial}
    (found,) = position(replace(checkpoint, initial=initial), 0).sources
    assert (found.kind, found.note) == (kind, golden.note)
    option = None if found.option is None else (found.option.name, found.option.value)
    assert option == golden.option


@pytest.mark.parametrize(("kind", "golden"), CASES)
def test_it_survives_json(kind: str, golden: Golden) -> None:
    source = read_source_offset("0", golden.text, golden.initial)
    wired = json.loads(dumps(source))
    assert wired == {"id": "0", "kind": kind, "offset": source.offset, "text": golden.text}
    assert read_source_offset("0", wired["text"], golden.initial) == source


@pytest.mark.parametrize(("kind", "golden"), CASES)
def test_it_stands_where_it_stands(kind: str, golden: Golden) -> None:
    known, offset = kind_named(kind), parse_offset_text(golden.text)
    assert list(known.went_back(offset, offset)) == []
    assert known.reads_another(offset, offset) is None
    assert known.parts(offset) == known.parts(json.loads(json.dumps(offset)))
    assert known.topics(known.renamed(offset, {})) == known.topics(offset)


ODD = (None, True, -1, 1.5, "x", [], {}, [1], {"x": {}}, 10**30)


def _mutants(value: Any) -> Iterator[Any]:
    """The value with one part of it odd, and then the next."""
    yield from ODD
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: one for name, one in value.items() if name != key}
            yield from ({**value, key: odd} for odd in _mutants(item))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from ([*value[:at], odd, *value[at + 1 :]] for odd in _mutants(item))


@pytest.mark.parametrize(("kind", "golden"), CASES)
def test_damaged_offsets_end_in_words(kind: str, golden: Golden) -> None:
    sound = read_source_offset("0", golden.text, golden.initial)
    for odd in _mutants(sound.offset):
        text = json.dumps(odd, separators=(",", ":"))
        found = read_source_offset("0", text, golden.initial)
        known = kind_named(found.kind)
        assert advance(found, sound)
        if found.offset is not None:
            assert isinstance(known.reached(found.offset), str)
            with suppress(MalformedFile):
                known.starting_option(found)
            if found.kind == kind:
                with suppress(MalformedFile):
                    list(known.went_back(sound.offset, found.offset))
                known.reads_another(sound.offset, found.offset)
                known.parts(found.offset)


# By kind: nothing that the connector would write or take, or a form of a later release.
NEVER_WRITTEN = {
    "kafka": (
        '{"t":{"0":9223372036854775808}}',
        '{"t":{"2147483648":5}}',
        '{"t":{"00":5,"0":6}}',
        '{"t":{"0":null}}',
        '{"t":{"0":5.0}}',
        '{"t":{"0":-2}}',
    ),
    "eventhubs": (
        '{"eh":{"0":-2,"1":-1}}',
        '{"eh":{"0":-9223372036854775808}}',
        '{"eh":{"0":"-1"}}',
        '{"eh":{"0":-1,"x":2}}',
        '{"eh":-1}',
    ),
    "iceberg": (
        '{"version":2,"snapshot_id":1,"position":0,"scan_all_files":false}',
        '{"version":null,"snapshot_id":1,"position":0,"scan_all_files":false}',
        '{"version":1,"snapshot_id":1,"position":0,"scan_all_files":false,"more":1}',
        '{"version":1,"snapshot_id":1,"position":0}',
        '[{"version":1,"snapshot_id":1,"position":0,"scan_all_files":false}]',
    ),
    "hudi": (
        '{"commitTime":"1","offsetCommitTime":"2"}',
        '{"commitTime":"1","more":1}',
        '{"committime":"1"}',
        '["1"]',
        '{"commitTime":["1"],"x":1}',
    ),
    "paimon": (
        '{"snapshotId":3,"index":1,"scanSnapshot":false,"more":1}',
        '{"snapshotId":3,"index":1}',
        '{"snapshotid":3,"index":1,"scanSnapshot":false}',
        '{"snapshotId":3}',
        "[3,1,false]",
    ),
    "pulsar": (
        '{"persistent://a/b/c":[]}',
        '{"persistent://a/b/c":1700000000000}',
        '{"persistent://a/b/c":null}',
        '{"persistent://a/b/c":[8,1000]}',
        '{"orders":[8,10,16,100]}',
    ),
    "mongodb": (
        '{"version": 2, "offset": {"_data": "82"}}',
        '{"version": 1, "offset": {"_data": "82", "more": 1}}',
        '{"_data": "82", "_more": 1}',
        '{"$timestamp": 1, "_data": "82"}',
        "{}",
    ),
    "delta-sharing": (
        '{"sourceVersion":2,"tableId":"a","tableVersion":8,"index":3,"isStartingVersion":false}',
        '{"sourceVersion":1,"tableVersion":8,"index":3,"isStartingVersion":false}',
        '{"sourceVersion":1,"tableId":"a","tableVersion":8,"index":3,"isStartingVersion":1,"x":1}',
        '{"sourceVersion":"1","tableId":"a","tableVersion":8,"index":3,"isStartingVersion":false}',
        '{"tableId":"a","tableVersion":8,"index":3,"isStartingVersion":false}',
    ),
    "auto-loader": (
        '{"seqNum":1,"sourceVersion":1,"more":1}',
        '{"seqNum":1}',
        '{"sourceVersion":1}',
        '{"seqnum":1,"sourceVersion":1}',
        "[1,1]",
    ),
    "kinesis": (
        '{"metadata":{"batchId":"1","streamName":"s"},"shardId-0":null}',
        '{"metadata":{"batchId":"1"}}',
        '{"metadata":{"batchId":"1","streamName":"s","more":"1"}}',
        '[{"shards":1}]',
        "[]",
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, every in NEVER_WRITTEN.items() for text in every]
)
def test_what_a_connector_never_writes_is_not_taken_for_its_own(kind: str, text: str) -> None:
    found = read_source_offset("0", text)
    assert found.kind != kind
    # And no other kind is sure of it, so that no option is made of it.
    recognised = recognise(Traces(found.offset, text))
    assert recognised is None or recognised.kind == "python"
    assert kind_named(found.kind).starting_option(found)[0] is None


def test_a_time_that_is_none_makes_no_option() -> None:
    text = GOLDEN["iceberg"][2].text.replace("1794807601000", str(2**63))
    source = read_source_offset("0", text)
    assert (source.kind, kind_named("iceberg").starting_option(source)[0]) == ("iceberg", None)
