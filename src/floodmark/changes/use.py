"""Is a query running on a checkpoint? Spark keeps no lock, so signs are all there is.

floodmark's own runs hold a lease in `_floodmark/lease.json`. Any other query shows only
by what it writes: where the newest file is fresh, the folder is watched for as long as
the last batches took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.layout import NOTES, OFFSETS, FileInfo
from floodmark.errors import InUse
from floodmark.storage.files import Files
from floodmark.storage.holder import read_holder
from floodmark.storage.process import host_name, is_running

# A run renews its lease every 10 seconds; one this old was left behind.
_LONG_GONE_MS = 600_000
_BEATS_WITHIN_SECONDS = 25.0
_SHORTEST_MS, _LONGEST_MS = 2_000, 15_000
_POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Clock:
    """Time as the signs are judged by; a test brings its own."""

    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    pause: Callable[[float], Any] = time.sleep


def user_of(files: Files, clock: Clock) -> str | None:
    """Who uses the checkpoint, in words; None where no sign of anyone is found."""
    return _leaseholder(files, clock) or _movement(files, clock)


def refuse_in_use(files: Files, clock: Clock, wait_seconds: float | None = None) -> None:
    """Refuses; or waits, if that was asked for, until the query has stopped."""
    until_ms = clock.now_ms() + int((wait_seconds or 0) * 1000)
    while True:
        user = user_of(files, clock)
        if user is None:
            return
        if clock.now_ms() >= until_ms:
            raise InUse(
                f"{files.root} is in use: {user}",
                "Two writers on one checkpoint undo each other's batches.",
                "Stop the query first, or wait for it with --wait SECONDS.",
            )
        clock.pause(1.0)


def _leaseholder(files: Files, clock: Clock) -> str | None:
    holder = read_holder(files)
    if holder is None:
        return None
    words = f"{holder.words}, holds its lease"
    if holder.host == host_name():
        return words if any(is_running(one) for one in holder.processes) else None
    if clock.now_ms() - holder.beat_ms > _LONG_GONE_MS:
        return None
    # Another host's clock may be wrong, so its heartbeat is watched, not compared.
    waited = 0.0
    while waited < _BEATS_WITHIN_SECONDS:
        clock.pause(1.0)
        waited += 1.0
        now = read_holder(files)
        if now is None:
            return None
        if (now.run, now.beat) != (holder.run, holder.beat):
            return words
    return None


def _movement(files: Files, clock: Clock) -> str | None:
    before = _written(files)
    times = [file.mtime_ms for file in before if file.mtime_ms is not None]
    if not times:
        return None
    window = _window_ms(before)
    until_ms = max(times) + window
    # A clock that runs behind the storage's would watch for ever.
    rounds = int(min(until_ms - clock.now_ms(), window) / 1000 / _POLL_SECONDS) + 1
    for _ in range(rounds if until_ms > clock.now_ms() else 0):
        clock.pause(_POLL_SECONDS)
        changed = {file[:2] for file in _written(files)} ^ {file[:2] for file in before}
        if changed:
            return f"{sorted(changed)[0][0]} changed while it was watched"
    return None


def _written(files: Files) -> tuple[FileInfo, ...]:
    return tuple(file for file in files.list().files if not file.path.startswith(NOTES + "/"))


def _window_ms(written: tuple[FileInfo, ...]) -> int:
    """Two batches' time, as the newest entries of the offset log show it."""
    times = sorted(
        file.mtime_ms
        for file in written
        if file.path.startswith(OFFSETS + "/") and file.mtime_ms is not None
    )
    between = times[-1] - times[-2] if len(times) > 1 else 0
    return max(_SHORTEST_MS, min(2 * between, _LONGEST_MS))
