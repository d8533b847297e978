"""Holds the result of a rehearsal on a fork of the checkpoint: Spark's own verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Rehearsal:
    ran: bool
    """Whether one batch finished."""
    batch: int
    real_sources: bool
    """False if empty sources replaced the query's own."""
    condition: str | None = None
    """Spark's name of the error, if it has one."""
    words: str = ""
    """What Spark said when it failed."""
    rows: int = 0
    progress: Mapping[str, Any] = field(default_factory=dict)
    """Spark's StreamingQueryProgress of the batch, as JSON data."""
