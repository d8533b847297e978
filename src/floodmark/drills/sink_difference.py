"""Compares a sink's rows after a crash with its rows without a crash."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class SinkDifference:
    """The differing rows of one sink."""

    lost: int = 0
    """Rows that only the undisturbed sink has."""
    repeated: int = 0
    """Rows that occur more often than in the undisturbed sink."""
    wrong: int = 0
    """Rows that the undisturbed sink does not have at all."""
    lost_rows: tuple[Row, ...] = ()
    """The first of the lost rows."""
    repeated_rows: tuple[Row, ...] = ()
    """The first of the repeated rows."""
    wrong_rows: tuple[Row, ...] = ()
    """The first of the wrong rows."""
    only_in: tuple[str, ...] = ()
    """The only columns in which rows differ, or come again with another value: a time, a counter,
    or a value that the pipeline computes wrongly."""

    @property
    def differ(self) -> bool:
        return bool(self.lost or self.repeated or self.wrong)


def compare_sinks(
    undisturbed: Iterable[Row], found: Iterable[Row], ignored: Sequence[str] = (), limit: int = 5
) -> SinkDifference:
    """Compare rows. They are equal if all columns are that are not ignored.

    A row that comes again with another number or time in one column is a repeated row.
    """
    before, after = _counted(undisturbed, ignored), _counted(found, ignored)
    as_they_are = _difference(before, after, limit)
    column = _only_in(before, after) if as_they_are.wrong else None
    if column is None:
        return as_they_are
    mine, theirs = _without(before, column), _without(after, column)
    told = _difference(mine, theirs, limit)
    if told.repeated and all(count == 1 for count in mine.values()):
        return replace(told, only_in=(column,))
    return replace(as_they_are, only_in=(column,)) if as_they_are.lost else as_they_are


def _difference(before: Counter[str], after: Counter[str], limit: int) -> SinkDifference:
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
    )


def _counted(rows: Iterable[Row], ignored: Sequence[str]) -> Counter[str]:
    return Counter(_text(row, ignored) for row in rows)


def _text(row: Row, ignored: Sequence[str]) -> str:
    kept = {name: value for name, value in row.items() if name not in ignored}
    return json.dumps(kept, sort_keys=True, default=str)


def _sample(found: Counter[str], limit: int) -> tuple[Row, ...]:
    return tuple(json.loads(text) for text in sorted(found)[:limit])


def _without(rows: Counter[str], column: str) -> Counter[str]:
    return _counted((json.loads(text) for text in rows.elements()), [column])


def _only_in(before: Counter[str], after: Counter[str]) -> str | None:
    """Return the only column without which no row would be lost or wrong; None if there is none."""
    names = json.loads(next(iter(before))) if before else {}
    if len(names) < 2:  # without columns, every row would be a repeated one
        return None
    for name in names:
        told = _difference(_without(before, name), _without(after, name), 0)
        if not told.lost and not told.wrong:
            return str(name)
    return None


@dataclass(frozen=True)
class PointResult:
    """The effect of a crash at one point."""

    point: str
    """Where in the batch the driver was killed."""
    survived: bool | None
    """None if no try hit the point."""
    repeated: int = 0
    """Rows that are in the sinks more often than they should be."""
    lost: int = 0
    """Rows that the sinks do not have."""
    wrong: int = 0
    """Rows that the undisturbed run does not write at all."""
    batch: int | None = None
    """The batch whose driver was killed."""
    hit: str | None = None
    """The point that a kill at a random time really hit."""
    words: str = ""
    """More about the result, in words."""
    sinks: Mapping[str, SinkDifference] = field(default_factory=dict)
    """The sinks that differ, by the place that the pipeline names."""


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
