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
from floodmark.checkpoint.position import position
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
