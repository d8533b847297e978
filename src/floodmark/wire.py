"""Converts frozen dataclasses to JSON and back, for --json and saved plans."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from floodmark.visible import json_visible

_PLAIN = frozenset({str, int, bool, float})


def to_wire(value: Any) -> Any:
    """Return the value as plain JSON data; a field named `x_` becomes `x`."""
    if value is None or type(value) in _PLAIN:
        # JSON has no NaN and no infinity: a strict reader would refuse the whole document.
        return str(value) if type(value) is float and not isfinite(value) else value
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: to_wire(getattr(value, name)) for key, name in _names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_wire(item) for item in value]
    return value


@lru_cache(maxsize=256)
def _names(kind: type) -> tuple[tuple[str, str], ...]:
    return tuple((field.name.rstrip("_"), field.name) for field in dataclasses.fields(kind))


def dumps(value: Any, indent: int | None = 2) -> str:
    """Return JSON text; characters that could control a terminal are escaped, the data is equal."""
    return json_visible(json.dumps(to_wire(value), indent=indent, ensure_ascii=False))
