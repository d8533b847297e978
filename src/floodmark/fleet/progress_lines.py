"""Parses the progress lines that `run` keeps. Pure.

The file is in the checkpoint, so a stranger may have written it: values that are no number are
left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

PHASES = ("latestOffset", "queryPlanning", "getBatch", "walCommit", "addBatch", "commitOffsets")
"""The phases in the order in which a batch goes through them."""
_LONGEST_LINE = 1 << 20
_LARGEST = 1 << 62


@dataclass(frozen=True)
class ProgressLine:
    batch: int
    run_id: str
    time_ms: int | None
    duration_ms: int
    """Spark's triggerExecution, in milliseconds."""
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    rows_out: int | None = None
    late_rows: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    watermark_ms: int | None = None
    event_time_max_ms: int | None = None


def parse_lines(data: bytes, last: int = 500) -> tuple[ProgressLine, ...]:
    """Return the newest lines, oldest first, without lines that are cut or no progress."""
    found: list[ProgressLine] = []
    for line in reversed(data.split(b"\n")):
        if len(found) >= last:
            break
        if 2 < len(line) <= _LONGEST_LINE and (parsed := _parse(line)) is not None:
            found.append(parsed)
    return tuple(reversed(found))


def by_batch(lines: Iterable[ProgressLine]) -> dict[int, ProgressLine]:
    """Return the last line of each batch, as a batch that ran again has two."""
    return {line.batch: line for line in lines}


def _parse(line: bytes) -> ProgressLine | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    batch, duration = _count(value.get("batch")), _count(value.get("duration_ms"))
    if batch is None or duration is None:
        return None
    phases = value.get("durations_ms")
    known = phases.items() if isinstance(phases, dict) else ()
    event_time = value.get("event_time")
    return ProgressLine(
        batch,
        str(value.get("run_id", ""))[:64],
        moment_ms(value.get("time")),
        duration,
        {name: count for name, ms in known if name in PHASES and (count := _count(ms)) is not None},
        _count(value.get("rows")),
        _count(value.get("rows_out")),
        _count(value.get("late_rows")),
        _count(value.get("state_rows")),
        _count(value.get("state_bytes")),
        moment_ms(value.get("watermark")),
        moment_ms(event_time.get("max")) if isinstance(event_time, dict) else None,
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _LARGEST else None


def moment_ms(value: Any) -> int | None:
    """Return 2026-11-16T10:00:00.000Z as milliseconds."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        found = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    return round(found.timestamp() * 1000)
