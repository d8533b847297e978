"""Waits until a running batch is at a chosen point, by looking at its folders all the time.

A poll every two milliseconds sees a new file soon enough: the windows are tens of
milliseconds wide, and what was really hit is judged afterwards (aftermath.py).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from floodmark.engine.drill.killing.driver import Driver
from floodmark.engine.drill.killing.sink_logs import SparkSinkRecord, names

POLL_SECONDS = 0.002
REACHED_WITHIN = 150.0
STATE_FILE = re.compile(r"(\d+)\.(?:delta|snapshot|changelog|zip)")

Trap = Callable[[], bool]


def batches(folder: Path) -> set[int]:
    return {int(name) for name in names(folder) if name.isdecimal()}


def partition_folders(checkpoint: Path) -> Iterator[Path]:
    """Of the first stateful operator."""
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
    """The n-th new entry in offsets/ or commits/."""
    before = batches(folder)
    return lambda: len(batches(folder) - before) >= nth


def sink_begun(sink: SparkSinkRecord, nth: int) -> Trap:
    """A data file of a batch that the sink's log does not have yet."""
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
    """The newest version of the state of each partition."""
    return [max(_versions(one), default=0) for one in partition_folders(checkpoint)]


def after(mark: Path, seconds: float) -> Trap:
    """So long after a file was written anew."""
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
    """This batch in offsets/ or commits/, by a driver that has started since."""
    running = after(started, 0.0)
    seen: list[bool] = []

    def sprung() -> bool:
        if not seen and running():
            seen.append(True)
        return bool(seen) and batch in batches(folder)

    return sprung


def state_reached(checkpoint: Path, version: int) -> Trap:
    """Some partitions have this version of the state, others not yet."""

    def sprung() -> bool:
        newest = newest_versions(checkpoint)
        return bool(newest) and max(newest) >= version > min(newest)

    return sprung


def wait_for(trap: Trap, driver: Driver, seconds: float = REACHED_WITHIN) -> bool:
    """False if the driver ended by itself before."""
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
