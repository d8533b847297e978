"""Waits until a running batch is at a chosen point, by looking at its folders all the time.

A poll every two milliseconds sees a new file soon enough: the windows are tens of
milliseconds wide, and what was really hit is judged afterwards (aftermath.py).
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from chaos.driver import Driver
from chaos.scenario import Point, Scenario
from chaos.sinks import DeltaSink, names

POLL_SECONDS = 0.002
REACHED_WITHIN = 150.0
RANDOM_WITHIN = 8.0
STATE_FILE = re.compile(r"(\d+)\.(?:delta|snapshot|changelog|zip)")

Trap = Callable[[], bool]


def batches(folder: Path) -> set[int]:
    return {int(name) for name in names(folder) if name.isdecimal()}


def state_versions(checkpoint: Path) -> dict[str, set[int]]:
    """partition → the versions that have a file."""
    operator = checkpoint / "state" / "0"
    return {
        partition: _versions(names(operator / partition))
        for partition in names(operator)
        if partition.isdecimal()
    }


def _versions(found: Iterable[str]) -> set[int]:
    return {int(match[1]) for name in found if (match := STATE_FILE.fullmatch(name))}


def logged(folder: Path, nth: int) -> Trap:
    """The n-th new entry in offsets/ or commits/."""
    before = batches(folder)
    return lambda: len(batches(folder) - before) >= nth


def held(folder: Path) -> Trap:
    """The application says that it waits."""
    before = set(names(folder))
    return lambda: bool(set(names(folder)) - before)


def sink_begun(sink: DeltaSink, nth: int) -> Trap:
    """A data file of a batch that the table's log does not have yet."""
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


def sink_done(sink: DeltaSink, nth: int) -> Trap:
    before = len(sink.commits())
    return lambda: len(sink.commits()) - before >= nth


def state_begun(checkpoint: Path, nth: int) -> Trap:
    """Some partitions have a new version, others not yet."""
    before = max(_newest(checkpoint), default=0)

    def sprung() -> bool:
        newest = _newest(checkpoint)
        return bool(newest) and max(newest) >= before + nth and min(newest) < max(newest)

    return sprung


def _newest(checkpoint: Path) -> list[int]:
    """Of each partition."""
    return [max(found, default=0) for found in state_versions(checkpoint).values()]


def any_time(checkpoint: Path, rng: random.Random) -> Trap:
    """Some seconds after the query was started."""
    lease = checkpoint / "_floodmark" / "lease.json"
    before = lease.stat().st_mtime_ns if lease.exists() else 0
    wait = rng.uniform(0, RANDOM_WITHIN)
    started: list[float] = []

    def sprung() -> bool:
        if not started:
            if lease.exists() and lease.stat().st_mtime_ns != before:
                started.append(time.monotonic())
            return False
        return time.monotonic() - started[0] >= wait

    return sprung


def wait_for(trap: Trap, driver: Driver) -> bool:
    """False if the driver ended by itself before."""
    deadline = time.monotonic() + REACHED_WITHIN
    looked = 0
    while not trap():
        looked += 1
        if looked % 50 == 0 and driver.status is not None:
            return False
        if time.monotonic() > deadline:
            raise TimeoutError(f"the point was not reached:\n{driver.last_words()}")
        time.sleep(POLL_SECONDS)
    return True


def trap_for(
    point: Point | None,
    scenario: Scenario,
    checkpoint: Path,
    sink: object,
    nth: int,
    rng: random.Random,
) -> Trap:
    """No point: any time."""
    if point is None:
        return any_time(checkpoint, rng)
    if scenario.holds(point):
        return held(checkpoint.parent / "held")
    if point is Point.DURING_STATE:
        return state_begun(checkpoint, nth)
    if point in (Point.DURING_SINK, Point.AFTER_SINK):
        assert isinstance(sink, DeltaSink)
        return sink_begun(sink, nth) if point is Point.DURING_SINK else sink_done(sink, nth)
    return logged(checkpoint / ("offsets" if point is Point.AFTER_OFFSET else "commits"), nth)
