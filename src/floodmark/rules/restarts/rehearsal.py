"""What a rehearsal on a fork of the checkpoint came to: Spark's own verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Rehearsal:
    ran: bool
    """One batch came to its end."""
    batch: int
    real_sources: bool
    """False where sources without rows stood in for the query's own."""
    condition: str | None = None
    """Spark's name of the error, where it has one."""
    words: str = ""
    """What Spark said when it failed."""
    rows: int = 0
    progress: Mapping[str, Any] = field(default_factory=dict)
    """What Spark told of the batch: its StreamingQueryProgress as JSON data."""
