"""Which trap a point of a scenario needs."""

from __future__ import annotations

import random
from pathlib import Path

from chaos.scenario import Scenario
from chaos.sinks import DeltaSink
from floodmark.drills.points import Point
from floodmark.engine.drill.traps import (
    Trap,
    after,
    appeared,
    logged,
    sink_begun,
    sink_done,
    state_begun,
)

RANDOM_WITHIN = 8.0


def trap_for(
    point: Point | None,
    scenario: Scenario,
    checkpoint: Path,
    sink: object,
    nth: int,
    rng: random.Random,
) -> Trap:
    """No point: any time, some seconds after the query was started."""
    if point is None:
        lease = checkpoint / "_floodmark" / "lease.json"
        return after(lease, rng.uniform(0, RANDOM_WITHIN))
    if scenario.holds(point):
        return appeared(checkpoint.parent / "held")
    if point is Point.DURING_STATE:
        return state_begun(checkpoint, nth)
    if point in (Point.DURING_SINK, Point.AFTER_SINK):
        assert isinstance(sink, DeltaSink)
        return sink_begun(sink, nth) if point is Point.DURING_SINK else sink_done(sink, nth)
    return logged(checkpoint / ("offsets" if point is Point.AFTER_OFFSET else "commits"), nth)
