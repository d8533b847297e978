"""Matches the columns of an aggregation: by function, by name, or not at all. Pure.

Spark calls the column of every sum `sum`. If the plans of both codes are known, columns are
matched by function and input. Otherwise they are matched by name if only one fits, and refused
if two do.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from floodmark.changes.matching.fields import (
    ColumnNotes,
    ColumnOptions,
    dropped,
    fill,
    match_struct,
    take,
)
from floodmark.changes.matching.shapes import Aggregate, OperatorShape, StoreShape
from floodmark.checkpoint.plan.meaning import meanings
from floodmark.checkpoint.plan.tree import Expression
from floodmark.errors import NotCarried
from floodmark.state.rows.types import Struct, distinct
from floodmark.state.shapes.reshape import KEY, VALUE, Column


def match_aggregation(
    old: OperatorShape,
    new: OperatorShape,
    before: StoreShape,
    after: StoreShape,
    told: ColumnOptions,
    ledger: ColumnNotes,
) -> tuple[Column, ...]:
    """Return, for each new column, a column of the old value or a filling."""
    if _is_same(old, new, before, after, told):
        fields, theirs = distinct(after.value).fields, distinct(before.value).fields
        return tuple(
            take(a, b, (VALUE, a.name), told, ledger) for a, b in zip(theirs, fields, strict=True)
        )
    new_aggregates = new.aggregates
    buffers = sum(one.columns for one in new_aggregates or ())
    if new_aggregates is None or buffers > len(after.value.fields):
        return _by_unique_names(before, after, None, told, ledger)
    head_size = len(after.value.fields) - buffers
    fields = distinct(after.value).fields
    if old.aggregates is None or sum(a.columns for a in old.aggregates) > len(before.value.fields):
        return _by_unique_names(before, after, new_aggregates, told, ledger)
    old_fields = distinct(before.value).fields
    old_head = len(old_fields) - sum(a.columns for a in old.aggregates)
    head = match_struct(
        Struct(old_fields[:old_head]),
        Struct(fields[:head_size]),
        (VALUE,),
        told,
        ledger,
        ((KEY,), distinct(before.key)),
    )
    return (*head, *_by_function(old, new, old_fields[old_head:], fields[head_size:], told, ledger))


def _is_same(
    old: OperatorShape,
    new: OperatorShape,
    before: StoreShape,
    after: StoreShape,
    told: ColumnOptions,
) -> bool:
    """Whether old and new have the same functions in the same order, and so the same columns."""
    if old.functions is None or new.functions is None or told.defaults or told.renames:
        return False
    same_columns = len(before.value.fields) == len(after.value.fields)
    return same_columns and old.functions == new.functions


def _by_function(
    old: OperatorShape,
    new: OperatorShape,
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    told: ColumnOptions,
    ledger: ColumnNotes,
) -> tuple[Column, ...]:
    assert old.aggregates is not None
    assert new.aggregates is not None
    places = _places(old.aggregates)
    functions = {meaning: one for one in old.aggregates for meaning in _meant(one, told)}
    # An unknown plan leaves only words; a rename may name a whole expression.
    said = {
        text: one
        for one in old.aggregates
        if (text := _with_renames(one.function, told)) != one.function or one.expression is None
    }
    used: set[str] = set()
    columns: list[Column] = []
    unmatched: list[tuple[Aggregate, tuple[Any, ...]]] = []
    at = 0
    for one in new.aggregates:
        mine = after[at : at + one.columns]
        at += one.columns
        told_here = any(
            told.old_name(f.name, (VALUE,)) or told.default(f.name, (VALUE,))[0] for f in mine
        )
        mine_means = _meant(one, ColumnOptions())
        found = next((functions[m] for m in mine_means if m in functions), None)
        found = found or said.get(one.function)
        if found is None or told_here or found.columns != one.columns:
            unmatched.append((one, mine))
            columns += _told_or_new(one, mine, before, told, ledger)
            continue
        used.add(found.function)
        start = places[found.function]
        theirs = before[start : start + one.columns]
        columns += [
            take(a, b, (VALUE, a.name), told, ledger) for a, b in zip(theirs, mine, strict=True)
        ]
    gone = [one for one in old.aggregates if one.function not in used]
    _refuse_twins(gone, unmatched, told, ledger)
    taken = {column.source[1] for column in columns if column.source}
    for one in gone:
        start = places[one.function]
        if not {f.name for f in before[start : start + one.columns]} & taken:
            ledger.note(f"{one.function} is left out")
    return tuple(columns)


def _places(aggregates: tuple[Aggregate, ...]) -> dict[str, int]:
    places, at = {}, 0
    for one in aggregates:
        places[one.function] = at
        at += one.columns
    return places


def _meant(one: Aggregate, told: ColumnOptions) -> frozenset[Expression]:
    """Return a function's meanings; with `--rename amount=paid`, sum(amount) means sum(paid)."""
    if one.expression is None:
        return frozenset()
    return meanings(one.expression, {old: new for new, old in told.renames.items()})


def _with_renames(function: str, told: ColumnOptions) -> str:
    for new, old in told.renames.items():
        function = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w(])", new, function)
    return function


def _told_or_new(
    one: Aggregate,
    mine: tuple[Any, ...],
    before: tuple[Any, ...],
    told: ColumnOptions,
    ledger: ColumnNotes,
) -> list[Column]:
    columns = []
    theirs = {one.name: one for one in before}
    for at, column in enumerate(mine):
        said = told.old_name(column.name, (VALUE,))
        if said is not None and said in theirs:
            columns.append(take(theirs[said], column, (VALUE, said), told, ledger))
            continue
        initial = one.initial[at] if one.initial is not None else None
        columns.append(fill(column, (VALUE,), told, ledger, initial))
    return columns


def _refuse_twins(
    gone: list[Aggregate],
    unmatched: list[tuple[Aggregate, tuple[Any, ...]]],
    told: ColumnOptions,
    ledger: ColumnNotes,
) -> None:
    """Refuse sum(a) gone and sum(b) new: only the user knows whether it was renamed."""
    for one, fields in unmatched:
        if any(
            told.default(f.name, (VALUE,))[0] or told.old_name(f.name, (VALUE,)) for f in fields
        ):
            continue
        twin = next((old for old in gone if old.name == one.name), None)
        if twin is not None:
            defaults = " ".join(f"--default {f.name}=VALUE" for f in fields)
            raise NotCarried(
                f"{ledger.where}: the old code has {twin.function}, the new one {one.function}",
                "The plans do not say whether it is the same aggregate with another name.",
                f"If it is the same: --rename {_inside(twin.function)}={_inside(one.function)}. "
                f"If it starts over: {defaults}.",
            )


def _inside(function: str) -> str:
    return function.partition("(")[2].removesuffix(")")


def _by_unique_names(
    before: StoreShape,
    after: StoreShape,
    aggregates: tuple[Aggregate, ...] | None,
    told: ColumnOptions,
    ledger: ColumnNotes,
) -> tuple[Column, ...]:
    """Match columns by name alone, as the old code's plan is unknown."""
    old, new = distinct(before.value), distinct(after.value)
    initial = _initial_values(aggregates, new)
    counts = Counter(before.value.names), Counter(after.value.names)
    columns: list[Column] = []
    for raw, wanted in zip(after.value.fields, new.fields, strict=True):
        said = told.old_name(wanted.name, (VALUE,))
        if said is not None and said in old.names:
            columns.append(take(old.field(said), wanted, (VALUE, said), told, ledger))
        elif told.default(wanted.name, (VALUE,))[0]:
            columns.append(fill(wanted, (VALUE,), told, ledger))
        elif counts[0][raw.name] == counts[1][raw.name] == 1:
            columns.append(take(old.field(wanted.name), wanted, (VALUE, wanted.name), told, ledger))
        elif counts[0][raw.name]:
            raise _ambiguous(raw.name, counts, new, ledger)
        elif raw.name in before.key.names:
            key = distinct(before.key)
            columns.append(take(key.field(raw.name), wanted, (KEY, raw.name), told, ledger))
        else:
            columns.append(fill(wanted, (VALUE,), told, ledger, initial.get(wanted.name)))
    _refuse_halves(aggregates, columns, told, ledger)
    _note_left_out(before, columns, ledger)
    return tuple(columns)


def _note_left_out(before: StoreShape, columns: list[Column], ledger: ColumnNotes) -> None:
    gone = dropped(before.value, tuple(columns), VALUE)
    gone = tuple(name for name in gone if name not in before.key.names)
    if gone:
        ledger.note(f"{', '.join(gone)} is left out")


def _initial_values(aggregates: tuple[Aggregate, ...] | None, new: Struct) -> dict[str, Any]:
    if aggregates is None:
        return {}
    values = [value for one in aggregates for value in one.initial or (None,) * one.columns]
    names = new.names[len(new.names) - len(values) :]
    return dict(zip(names, values, strict=True))


def _ambiguous(
    name: str, counts: tuple[Counter[str], Counter[str]], new: Struct, ledger: ColumnNotes
) -> NotCarried:
    return NotCarried(
        f"{ledger.where}: the old state has {counts[0][name]} columns named {name}, the new state "
        f"has {counts[1][name]}",
        "Spark gives the columns of every such aggregate the same name, so floodmark cannot match "
        "them: this checkpoint has no note of the old code's plan, or one of its functions keeps "
        "columns "
        "that floodmark does not know.",
        "Give the old code (--from-app OLD.py), or name each column: --rename OLD=NEW and "
        f"--default NEW=VALUE. The new columns are {', '.join(new.names)}.",
    )


def _refuse_halves(
    aggregates: tuple[Aggregate, ...] | None,
    columns: list[Column],
    told: ColumnOptions,
    ledger: ColumnNotes,
) -> None:
    """Refuse half an aggregate: an old sum and a new count of 0 would give wrong averages."""
    if aggregates is None:
        return
    at = len(columns) - sum(one.columns for one in aggregates)
    for one in aggregates:
        mine = columns[at : at + one.columns]
        at += one.columns
        filled = [c for c in mine if c.is_filled and not told.default(c.name, (VALUE,))[0]]
        if filled and len(filled) < len(mine):
            kept = next(column for column in mine if not column.is_filled)
            raise NotCarried(
                f"{ledger.where}: {one.function} keeps "
                f"{' and '.join(column.name for column in mine)}, but the old state has only "
                f"{kept.name}",
                "An aggregate that is half old and half new gives wrong results.",
                "To begin it again, give its defaults: "
                + " ".join(f"--default {column.name}=VALUE" for column in mine)
                + ".",
            )
