"""What a checkpoint is to the rules of compatibility, whether it was read or outlined. Pure."""

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
    """Of the start that made the state, as JSON data."""
    places: tuple[str, ...] = ()
    seen: Mapping[int, str] = field(default_factory=dict)
    windows: Mapping[int, int] = field(default_factory=dict)
    schemas: Mapping[int, Mapping[str, StateSchema]] = field(default_factory=dict)
    """Operator → store → its schema as its file has it."""
    is_outline: bool = False
    """Of an earlier time, and without the place where it lay."""

    @property
    def last(self) -> LastStart | None:
        return last_start(self.note)
