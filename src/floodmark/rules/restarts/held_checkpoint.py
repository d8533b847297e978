"""Holds a checkpoint as the compatibility rules see it, read or outlined. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outline import OperatorOutline
from floodmark.checkpoint.start_note import LastStart, last_start
from floodmark.state.shapes.schema import StateSchema


@dataclass(frozen=True)
class HeldCheckpoint:
    checkpoint: Checkpoint
    held: tuple[OperatorOutline, ...]
    note: Mapping[str, Any] | None = None
    """The note of the start that made the state, as JSON data."""
    places: tuple[str, ...] = ()
    seen: Mapping[int, str] = field(default_factory=dict)
    windows: Mapping[int, int] = field(default_factory=dict)
    schemas: Mapping[int, Mapping[str, StateSchema]] = field(default_factory=dict)
    """Operator → store → the schema in its file."""
    is_outline: bool = False
    """Whether it comes from an outline, which is older and has no location."""

    @property
    def last(self) -> LastStart | None:
        return last_start(self.note)
