"""Compares what a sink holds after a crash with what it holds without one, row by row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class SinkDifference:
    """Rows of one sink."""

    lost: int = 0
    """Rows that the undisturbed sink has, and this one has not."""
    repeated: int = 0
    """Rows that are there more often than in the undisturbed sink."""
    wrong: int = 0
    """Rows that the undisturbed sink does not have at all."""
    lost_rows: tuple[Row, ...] = ()
    """The first of the lost rows."""
    repeated_rows: tuple[Row, ...] = ()
    """The first of the repeated rows."""
    wrong_rows: tuple[Row, ...] = ()
    """The first of the wrong rows."""
    only_in: tuple[str, ...] = ()
    """Columns in which alone lost and wrong rows differ: a clock's, perhaps."""

    @property
    def differ(self) -> bool:
        return bool(self.lost or self.repeated or self.wrong)


def compare_sinks(
    undisturbed: Iterable[Row], found: Iterable[Row], ignored: Sequence[str] = (), limit: int = 5
) -> SinkDifference:
    """Rows are equal where all columns are that are not ignored."""
    before, after = _counted(undisturbed, ignored), _counted(found, ignored)
    lost, more = before - after, after - before
    repeated = Counter({text: count for text, count in more.items() if text in before})
    wrong = more - repeated
    return SinkDifference(
        sum(lost.values()),
        sum(repeated.values()),
        sum(wrong.values()),
        _sample(lost, limit),
        _sample(repeated, limit),
        _sample(wrong, limit),
        _only_in(before, after) if lost and wrong else (),
    )


def _counted(rows: Iterable[Row], ignored: Sequence[str]) -> Counter[str]:
    return Counter(_text(row, ignored) for row in rows)


def _text(row: Row, ignored: Sequence[str]) -> str:
    kept = {name: value for name, value in row.items() if name not in ignored}
    return json.dumps(kept, sort_keys=True, default=str)


def _sample(found: Counter[str], limit: int) -> tuple[Row, ...]:
    return tuple(json.loads(text) for text in sorted(found)[:limit])


def _only_in(before: Counter[str], after: Counter[str]) -> tuple[str, ...]:
    """The one column without which no row would be lost or wrong, where there is such a one."""
    mine = [json.loads(text) for text in before.elements()]
    theirs = [json.loads(text) for text in after.elements()]
    for name in mine[0] if mine else ():
        lost = _counted(mine, [name]) - _counted(theirs, [name])
        wrong = _counted(theirs, [name]).keys() - _counted(mine, [name]).keys()
        if not lost and not wrong:
            return (name,)
    return ()


@dataclass(frozen=True)
class PointResult:
    """What a crash at one point has done."""

    point: str
    """Where in the batch the driver was killed."""
    survived: bool | None
    """None: the point was not hit in any of the tries."""
    repeated: int = 0
    """Rows that are in the sinks more often than they should be."""
    lost: int = 0
    """Rows that the sinks do not have."""
    wrong: int = 0
    """Rows that the undisturbed run does not write at all."""
    batch: int | None = None
    """The batch whose driver was killed."""
    hit: str | None = None
    """Where it really was, for a random time."""
    words: str = ""
    """What else there is to say of it."""
    sinks: Mapping[str, SinkDifference] = field(default_factory=dict)
    """By the sink's place, as the pipeline names it; those that differ."""


def point_result(
    point: str,
    batch: int | None,
    differences: Mapping[str, SinkDifference],
    failure: str = "",
    hit: str | None = None,
) -> PointResult:
    differ = {name: one for name, one in differences.items() if one.differ}
    return PointResult(
        point,
        not differ and not failure,
        sum(one.repeated for one in differ.values()),
        sum(one.lost for one in differ.values()),
        sum(one.wrong for one in differ.values()),
        batch,
        hit,
        failure,
        differ,
    )
