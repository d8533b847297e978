"""Which trap a point of a scenario needs."""

from __future__ import annotations

import random
from pathlib import Path

from chaos.scenario import Scenario
from chaos.sinks import DeltaSink
from floodmark.drills.points import Point
from floodmark.engine.drill.killing.logged_batches import names
from floodmark.engine.drill.killing.traps import (
    Trap,
    after,
    logged,
    newest_versions,
    sink_begun,
    sink_done,
)

RANDOM_WITHIN = 8.0


def trap_for(
    point: Point | None,
    scenario: Scenario,
    checkpoint: Path,
    held: Path,
    sink: object,
    nth: int,
    rng: random.Random,
) -> Trap:
    """No point: any time, some seconds after the query was started."""
    if point is None:
        lease = checkpoint / "_floodmark" / "lease.json"
        return after(lease, rng.uniform(0, RANDOM_WITHIN))
    if scenario.holds(point):
        return _appeared(held)
    if point is Point.DURING_STATE:
        return _state_begun(checkpoint, nth)
    if point in (Point.DURING_SINK, Point.AFTER_SINK):
        assert isinstance(sink, DeltaSink)
        return sink_begun(sink, nth) if point is Point.DURING_SINK else sink_done(sink, nth)
    return logged(checkpoint / ("offsets" if point is Point.AFTER_OFFSET else "commits"), nth)


def _appeared(folder: Path) -> Trap:
    """A new file in a folder: the application says that it waits."""
    before = set(names(folder))
    return lambda: bool(set(names(folder)) - before)


def _state_begun(checkpoint: Path, nth: int) -> Trap:
    """Some partitions have a new version, others not yet."""
    before = max(newest_versions(checkpoint), default=0)

    def sprung() -> bool:
        newest = newest_versions(checkpoint)
        return bool(newest) and max(newest) >= before + nth and min(newest) < max(newest)

    return sprung
