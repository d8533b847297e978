"""What a rehearsal on a fork of the checkpoint came to: Spark's own verdict."""

from __future__ import annotations

from dataclasses import dataclass


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
