from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from floodmark.wire import dumps, to_wire


class Colour(str, Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    from_: int
    colour: Colour


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    conf: Any
    nothing: None = None


def test_dataclasses_become_plain_data() -> None:
    value = Outer((Inner(1, Colour.RED),), MappingProxyType({1: {"a": frozenset({2})}}))
    assert to_wire(value) == {
        "inner": [{"from": 1, "colour": "red"}],
        "conf": {"1": {"a": [2]}},
        "nothing": None,
    }


def test_it_is_json() -> None:
    text = dumps({"ä": (1, 2.5, True, None, "x")})
    assert json.loads(text) == {"ä": [1, 2.5, True, None, "x"]}
    assert "ä" in text
    assert dumps({"a": 1}, indent=None) == '{"a": 1}'


def test_an_enum_that_is_a_text_is_its_value() -> None:
    assert dumps(Colour.RED) == '"red"'
    assert to_wire([Colour.RED]) == ["red"]
