"""Judges whether a stream is on time, from its last commit and its own usual interval.

The usual interval is the 95th percentile of the times between its commits. So a stream that runs
once an hour can be on time just as one that runs every second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

_PERCENTILE = 0.95
_FEWEST = 3
# How many usual intervals may pass, and an allowance for clocks and caches that differ.
_LATE, _LATE_MS = 2, 5_000
_SILENT, _SILENT_MS = 10, 30_000
_RECENT = 20


class StreamHealth(str, Enum):
    ON_TIME = "on-time"
    """The last commit is as recent as usual."""
    LATE = "late"
    """Two usual intervals have passed, or more."""
    STALLED = "stalled"
    """Ten usual intervals have passed, and there is work: a planned batch, or waiting records."""
    QUIET = "quiet"
    """Ten usual intervals have passed; it is unknown whether there is something to read."""
    IDLE = "idle"
    """No commit has come for a while, and nothing waits to be read."""
    NEW = "new"
    """Too few batches to know what is usual."""
    UNKNOWN = "unknown"
    """The checkpoint cannot be read now."""


@dataclass(frozen=True)
class Pulse:
    health: StreamHealth
    """`on-time`, `late` after two usual intervals, `stalled` after ten with work waiting, `quiet`
    after ten otherwise, `idle` with nothing to read, `new` with too few batches to tell,
    `unknown`."""
    last_commit_ms: int | None
    """The time when the last batch was committed."""
    age_ms: int | None
    """The time since then."""
    usual_ms: int | None
    """The 95th percentile of the times between commits."""
    batches_per_minute: float | None
    """The rate over the most recent batches."""
    words: str
    """The same as a sentence."""


def usual_interval(times_ms: Sequence[int]) -> int | None:
    """Return the 95th percentile of the steps between sorted times."""
    steps = sorted(max(after - before, 0) for before, after in pairwise(times_ms))
    if len(steps) < _FEWEST:
        return None
    return steps[min(int(len(steps) * _PERCENTILE), len(steps) - 1)]


def batch_rate(times_ms: Sequence[int]) -> float | None:
    """Return batches per minute over the most recent ones."""
    recent = times_ms[-_RECENT:]
    if len(recent) < 2 or recent[-1] <= recent[0]:
        return None
    return round((len(recent) - 1) * 60_000 / (recent[-1] - recent[0]), 2)


def pulse(
    commit_times_ms: Sequence[int],
    now_ms: int,
    planned_ms: int | None = None,
    waiting: int | None = None,
    steady: bool = False,
) -> Pulse:
    """Judge the pulse; `planned_ms`: when the batch in flight was planned, `waiting`: unread input.

    `steady`: the stream also commits when there is no input, as DStreams does.
    """
    usual = usual_interval(commit_times_ms)
    last = commit_times_ms[-1] if commit_times_ms else None
    age = None if last is None else max(now_ms - last, 0)
    health, words = _judge(usual, age, planned_ms, now_ms, waiting, steady)
    return Pulse(health, last, age, usual, batch_rate(commit_times_ms), words)


def _judge(
    usual: int | None,
    age: int | None,
    planned_ms: int | None,
    now_ms: int,
    waiting: int | None,
    steady: bool,
) -> tuple[StreamHealth, str]:
    deed = "save" if steady else "commit"
    if age is None:
        if planned_ms is None:
            return StreamHealth.NEW, "No batch was committed yet."
        return StreamHealth.NEW, f"The first batch is planned for {span(now_ms - planned_ms)}."
    if usual is None:
        return (
            StreamHealth.NEW,
            f"Last {deed} {span(age)} ago; too few batches to know what is usual.",
        )
    against = f"Last {deed} {span(age)} ago; usual is at most {span(usual)}."
    if age <= _LATE * usual + _LATE_MS:
        return StreamHealth.ON_TIME, against
    if waiting == 0 and planned_ms is None:
        return StreamHealth.IDLE, f"{against} Nothing waits to be read."
    if age <= _SILENT * usual + _SILENT_MS:
        return StreamHealth.LATE, against
    if steady:
        return (
            StreamHealth.STALLED,
            f"{against} It saves itself also when nothing comes, so it does not run.",
        )
    if planned_ms is not None:
        return (
            StreamHealth.STALLED,
            f"{against} A batch is planned for {span(now_ms - planned_ms)}.",
        )
    if waiting:
        return StreamHealth.STALLED, f"{against} {waiting:,} records wait."
    return StreamHealth.QUIET, f"{against} Whether anything waits to be read is not known."


def span(ms: float) -> str:
    """Return a length of time for a person: 340 ms, 12 s, 4 min, 3 h, 2 days."""
    if ms < 1000:
        return f"{max(ms, 0):.0f} ms"
    seconds = ms / 1000
    for size, unit, most in ((1, "s", 120), (60, "min", 120 * 60), (3600, "h", 48 * 3600)):
        if seconds < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:.3g} days"
