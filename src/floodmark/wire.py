"""Frozen dataclasses to JSON and back: --json, the web pages and saved plans share it."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping
from typing import Any


def to_wire(value: Any) -> Any:
    """The value as plain JSON data. A field named `x_` comes out as `x`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name.rstrip("_"): to_wire(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_wire(item) for item in value]
    return value


def dumps(value: Any, indent: int | None = 2) -> str:
    return json.dumps(to_wire(value), indent=indent, ensure_ascii=False)
