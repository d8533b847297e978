"""A query that is about to start, made of plain data: all is well unless it is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import samples
from floodmark.checkpoint.live_answers import Bounds, LiveAnswers, TableLog
from floodmark.connectors.source import SourceOffset
from floodmark.rules.start_inputs.situation import Situation, StartingSource

TOPICS = {"orders": {"0": 5, "1": 9}}
KAFKA = StartingSource(
    "0",
    "kafka",
    {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"},
    SourceOffset("0", "kafka", TOPICS, None),
)
DELTA = StartingSource(
    "1",
    "delta",
    {"path": "/lake/orders"},
    SourceOffset(
        "1",
        "delta",
        {
            "sourceVersion": 1,
            "reservoirId": "a1b2",
            "reservoirVersion": 7,
            "index": -1,
            "isStartingVersion": False,
        },
        None,
    ),
)
BOUNDS = {0: Bounds(0, 20), 1: Bounds(0, 20)}
TABLE = TableLog("/lake/orders", "a1b2", 5, 9)
OUTSIDE = LiveAnswers(kafka={"0": {"orders": BOUNDS}}, tables={"1": TABLE}, inputs={"2": ()})
FILES = StartingSource("2", "csv", {"path": "/in"}, SourceOffset("2", "file", 3, None))
SOUND = Situation(
    "sales",
    "file:/checkpoints/sales",
    "local[2]",
    samples.checkpoint(samples.sales(2)),
    True,
    (KAFKA, DELTA, FILES),
    {"path": "/out", "checkpointlocation": "/checkpoints/sales"},
    "file:/checkpoints/sales",
    {},
    OUTSIDE,
)


def situation(**changed: Any) -> Situation:
    return replace(SOUND, **changed)


def outside(**changed: Any) -> Situation:
    return replace(SOUND, outside=replace(OUTSIDE, **changed))
