"""Waits until a running batch is at a chosen point, by watching its folders.

A poll every two milliseconds sees a new file soon enough: the windows are tens of milliseconds
wide, and aftermath.py judges afterwards which point was really hit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from floodmark.engine.drill.killing.driver import Driver
from floodmark.engine.drill.killing.logged_batches import SparkSinkRecord, names

POLL_SECONDS = 0.002
REACHED_WITHIN = 150.0
STATE_FILE = re.compile(r"(\d+)\.(?:delta|snapshot|changelog|zip)")

Trap = Callable[[], bool]


def batches(folder: Path) -> set[int]:
    return {int(name) for name in names(folder) if name.isdecimal()}


def partition_folders(checkpoint: Path) -> Iterator[Path]:
    """Yield the partitions' folders of the first stateful operator."""
    operator = checkpoint / "state" / "0"
    for partition in names(operator):
        if partition.isdecimal():
            yield operator / partition


def _versions(partition: Path) -> set[int]:
    found = names(partition)
    if not any(STATE_FILE.fullmatch(name) for name in found):  # a join has several stores there
        found = [inner for name in found for inner in names(partition / name)]
    return _numbers(found)


def _numbers(found: Iterable[str]) -> set[int]:
    return {int(match[1]) for name in found if (match := STATE_FILE.fullmatch(name))}


def logged(folder: Path, nth: int) -> Trap:
    """Return a trap that waits for the n-th new entry in offsets/ or commits/."""
    before = batches(folder)
    return lambda: len(batches(folder) - before) >= nth


def sink_begun(sink: SparkSinkRecord, nth: int) -> Trap:
    """Return a trap that waits for a data file of a batch that is not yet in the sink's log."""
    first = len(sink.commits())
    seen = first
    known = sink.data_files()

    def sprung() -> bool:
        nonlocal seen, known
        files, commits = sink.data_files(), len(sink.commits())
        if commits > seen:
            seen, known = commits, files
        return commits - first >= nth - 1 and bool(files - known)

    return sprung


def sink_done(sink: SparkSinkRecord, nth: int) -> Trap:
    before = len(sink.commits())
    return lambda: len(sink.commits()) - before >= nth


def newest_versions(checkpoint: Path) -> list[int]:
    """Return the newest version of the state of each partition."""
    return [max(_versions(one), default=0) for one in partition_folders(checkpoint)]


def after(mark: Path, seconds: float) -> Trap:
    """Return a trap that waits this long after a file was written again."""
    before = _written(mark)
    seen: list[float] = []

    def sprung() -> bool:
        if not seen:
            if _written(mark) not in (0, before):
                seen.append(time.monotonic())
            return False
        return time.monotonic() - seen[0] >= seconds

    return sprung


def _written(mark: Path) -> int:
    try:
        return mark.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def reached(folder: Path, batch: int, started: Path) -> Trap:
    """Return a trap that waits for this batch in offsets/ or commits/, by a newer driver."""
    running = after(started, 0.0)
    seen: list[bool] = []

    def sprung() -> bool:
        if not seen and running():
            seen.append(True)
        return bool(seen) and batch in batches(folder)

    return sprung


def state_reached(checkpoint: Path, version: int) -> Trap:
    """Return a trap for the moment when only some partitions have this version of the state."""

    def sprung() -> bool:
        newest = newest_versions(checkpoint)
        return bool(newest) and max(newest) >= version > min(newest)

    return sprung


def wait_for(trap: Trap, driver: Driver, seconds: float = REACHED_WITHIN) -> bool:
    """Wait for the trap; return False if the driver ended by itself before."""
    deadline = time.monotonic() + seconds
    looked = 0
    while not trap():
        looked += 1
        if looked % 50 == 0 and driver.status is not None:
            return False
        if time.monotonic() > deadline:
            raise TimeoutError(f"the point was not reached:\n{driver.last_words()}")
        time.sleep(POLL_SECONDS)
    return True
