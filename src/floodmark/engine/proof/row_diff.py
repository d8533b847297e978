"""Compares the rows that two codes write for one batch, by key or as whole rows. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.screen import line_text

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RowDifference:
    """The difference of one key, or of one row where rows have no key."""

    batch: int
    """The batch that wrote the rows."""
    change: str
    """`changed`, `only-old` or `only-new`."""
    key: Row
    """The key; empty where rows have no key."""
    old: tuple[Row, ...]
    """The old code's rows."""
    new: tuple[Row, ...]
    """The new code's rows."""

    __repr__ = line_text


@dataclass(frozen=True)
class RowCounts:
    equal: int = 0
    changed: int = 0
    only_old: int = 0
    only_new: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.equal + other.equal,
            self.changed + other.changed,
            self.only_old + other.only_old,
            self.only_new + other.only_new,
        )


def compare_rows(
    batch: int,
    old: Iterable[Row],
    new: Iterable[Row],
    keys: Sequence[str],
    columns: Sequence[str],
) -> tuple[RowCounts, Iterator[RowDifference]]:
    """Compare by `keys`, or whole rows without keys; `columns` are those of both outputs.

    Without a common column, no row of one output equals a row of the other.
    """
    before, after = _by_key(old, keys or columns), _by_key(new, keys or columns)
    equal = 0
    found: list[RowDifference] = []
    for name in {**before, **after}:
        mine, theirs = before.get(name, []), after.get(name, [])
        same = _values(mine, columns) == _values(theirs, columns)
        if keys and same:
            equal += 1
        elif keys:
            change = "changed" if mine and theirs else "only-old" if mine else "only-new"
            key = {one: (mine or theirs)[0][one] for one in keys}
            found.append(RowDifference(batch, change, key, tuple(mine), tuple(theirs)))
        else:
            both = min(len(mine), len(theirs)) if columns else 0
            equal += both
            found += [RowDifference(batch, "only-old", {}, (one,), ()) for one in mine[both:]]
            found += [RowDifference(batch, "only-new", {}, (), (one,)) for one in theirs[both:]]
    count = Counter(one.change for one in found)
    counts = RowCounts(equal, count["changed"], count["only-old"], count["only-new"])
    return counts, iter(found)


def _by_key(rows: Iterable[Row], names: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(_text([row[name] for name in names]), []).append(row)
    return found


def _values(rows: Iterable[Row], columns: Sequence[str]) -> list[str]:
    return sorted(_text([row[name] for name in columns]) for row in rows)


def _text(values: Any) -> str:
    return json.dumps(values, sort_keys=True, default=str)
