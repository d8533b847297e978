"""Names the points of a batch at which a driver can die, in the order of Spark's protocol."""

from __future__ import annotations

from enum import Enum


class Point(str, Enum):
    """The position of a batch when its driver dies."""

    STARTING = "starting"
    """Before the first batch was planned."""
    AFTER_OFFSET = "after-offset"
    DURING_STATE = "during-state"
    DURING_SINK = "during-sink"
    AFTER_SINK = "after-sink"
    AFTER_COMMIT = "after-commit"

    def __str__(self) -> str:
        return self.value


POINTS = (
    Point.AFTER_OFFSET,
    Point.DURING_STATE,
    Point.DURING_SINK,
    Point.AFTER_SINK,
    Point.AFTER_COMMIT,
)
"""The points at which a drill kills a driver."""
