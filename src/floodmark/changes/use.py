"""Is a query running on a checkpoint? Spark keeps no lock, so signs are all there is.

floodmark's own runs hold a lease in `_floodmark/lease.json`. Any other query shows only
by what it writes: where the newest file is fresh, the folder is watched for as long as
the last batches took.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from floodmark.changes.refusals import InUse
from floodmark.checkpoint.layout import NOTES, OFFSETS, FileInfo
from floodmark.errors import FileGone
from floodmark.storage.files import Files

LEASE = f"{NOTES}/lease.json"
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


def _lease(files: Files) -> dict[str, Any] | None:
    try:
        value = json.loads(files.read(LEASE))
    except (FileGone, ValueError):
        return None
    return value if isinstance(value, dict) and value.get("floodmark") == "lease" else None


def _leaseholder(files: Files, clock: Clock) -> str | None:
    lease = _lease(files)
    if lease is None:
        return None
    words = f"pipeline {lease.get('pipeline')} on host {lease.get('host')} holds its lease"
    if lease.get("host") == socket.gethostname():
        processes = lease.get("processes")
        alive = isinstance(processes, list) and any(_is_running(one) for one in processes)
        return words if alive else None
    beat_ms = lease.get("beat_ms")
    if not isinstance(beat_ms, int) or clock.now_ms() - beat_ms > _LONG_GONE_MS:
        return None
    # Another host's clock may be wrong, so its heartbeat is watched, not compared.
    waited = 0.0
    while waited < _BEATS_WITHIN_SECONDS:
        clock.pause(1.0)
        waited += 1.0
        now = _lease(files)
        if now is None:
            return None
        if (now.get("run"), now.get("beat")) != (lease.get("run"), lease.get("beat")):
            return words
    return None


def _is_running(process: Any) -> bool:
    if not isinstance(process, dict) or type(process.get("pid")) is not int:
        return False
    started = process.get("started")
    if started is not None:  # a number alone may have been given to another process since
        return bool(_start_time(process["pid"]) == started)
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start_time(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if len(fields) < 20 or fields[0] in "ZX" else int(fields[19])


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
