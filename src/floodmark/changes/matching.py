"""The old code's operators and the new code's: which is which, and how its rows are carried. Pure.

Operators are matched by kind and order. Columns of an aggregation are matched by function
and input where both plans are known, by name where only one can be meant, and refused
where two could.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from floodmark.changes.fields import Ledger, Told, dropped, fill, match_key, match_struct, take
from floodmark.changes.shapes import (
    AGGREGATION,
    DEDUP,
    JOIN,
    SESSION,
    UNKNOWN,
    VARIABLES,
    Aggregate,
    Operator,
    Store,
)
from floodmark.errors import WrongUse
from floodmark.state.reshape import KEY, VALUE, Column, NotCarried, Recipe
from floodmark.state.types import Struct, distinct

MERGES = ("sum", "min", "max", "any")
DROPPED_OPERATOR = "dropped-operator"
DROPPED_KEYS = "dropped-keys"
ACCEPTED = (DROPPED_OPERATOR, DROPPED_KEYS)


@dataclass(frozen=True)
class StoreMatch:
    store: str
    """The store or column family, by the same name in both."""
    recipe: Recipe | None
    """None: a function of the user's makes the rows."""
    old: Store
    new: Store


@dataclass(frozen=True)
class OperatorMatch:
    new: Operator
    old: Operator | None
    """None: the operator is new, and starts empty."""
    stores: tuple[StoreMatch, ...] = ()


@dataclass(frozen=True)
class Matching:
    operators: tuple[OperatorMatch, ...]
    removed: tuple[Operator, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MatchWish:
    told: Told = field(default_factory=Told)
    accept: frozenset[str] = frozenset()
    merge: Mapping[str, str] | None = None
    given: frozenset[tuple[int, str]] = frozenset()
    """(new operator, store) whose rows a function of the user's makes."""


def match(old: Sequence[Operator], new: Sequence[Operator], wish: MatchWish) -> Matching:
    _refuse_unused(wish.told, old, new)
    pairs, removed = _pairs(old, new)
    notes: list[str] = []
    if removed and DROPPED_OPERATOR not in wish.accept:
        gone = ", ".join(one.words for one in removed)
        raise NotCarried(
            f"the new code has no {gone}: that state would be dropped",
            "What it holds cannot be had again from this checkpoint.",
            f"If that is meant: --accept {DROPPED_OPERATOR}.",
        )
    notes += [f"The state of {one.words} is dropped." for one in removed]
    matched = []
    for mine, theirs in pairs:
        if theirs is None:
            notes.append(f"{mine.words} is new: it starts empty, and knows no record before.")
            matched.append(OperatorMatch(mine, None))
            continue
        matched.append(_operator(theirs, mine, wish, notes))
    _refuse_idle_merge(matched, wish)
    return Matching(tuple(matched), removed, tuple(notes))


def _refuse_idle_merge(matched: list[OperatorMatch], wish: MatchWish) -> None:
    recipes = [store.recipe for one in matched for store in one.stores]
    if wish.merge and not wish.given and not any(one and one.merge for one in recipes):
        raise WrongUse(
            f"--merge {next(iter(wish.merge))}: no keys become one",
            "The new code groups by all that the old code did.",
            "Leave the option out.",
        )


def _pairs(
    old: Sequence[Operator], new: Sequence[Operator]
) -> tuple[list[tuple[Operator, Operator | None]], tuple[Operator, ...]]:
    for one in (*old, *new):
        if one.kind == UNKNOWN:
            raise NotCarried(
                f"{one.words}: the state of such an operator is not known",
                "Only Spark's own operators can be carried over.",
            )
    counts = Counter(one.kind for one in old), Counter(one.kind for one in new)
    for kind in set(counts[0]) & set(counts[1]):
        if counts[0][kind] != counts[1][kind] and max(counts[0][kind], counts[1][kind]) > 1:
            raise NotCarried(
                f"the old code has {counts[0][kind]} operators of kind {kind}, the new one "
                f"{counts[1][kind]}",
                "Nothing says which of them is which.",
                "Take the change in two steps, one operator at a time.",
            )
    left = list(old)
    pairs: list[tuple[Operator, Operator | None]] = []
    for mine in new:
        found = next((one for one in left if one.kind == mine.kind), None)
        if found is not None:
            left.remove(found)
        pairs.append((mine, found))
    return pairs, tuple(left)


def _operator(old: Operator, new: Operator, wish: MatchWish, notes: list[str]) -> OperatorMatch:
    ledger = Ledger(new.words)
    stores = []
    theirs = {store.name: store for store in old.stores}
    for store in new.stores:
        before = theirs.get(store.name)
        if before is None:
            if new.kind != VARIABLES:
                raise NotCarried(
                    f"{new.words}: the new state has a store {store.name}, the old has "
                    f"{', '.join(theirs)}",
                    "The two keep their rows in different formats.",
                    "Keep the old format: it stays as the checkpoint pins it, unless --conf says "
                    "otherwise.",
                )
            if not store.name.startswith("$"):
                ledger.note(f"the variable {store.name} is new: it starts empty")
            continue
        given = (new.number, store.name) in wish.given
        recipe = None if given else _recipe(old, new, before, store, wish, ledger)
        stores.append(StoreMatch(store.name, recipe, before, store))
    names = {store.name for store in new.stores}
    gone = [name for name in theirs if name not in names and not name.startswith("$")]
    if gone:
        ledger.note(f"the variable {', '.join(gone)} is left out")
    notes += ledger.notes
    return OperatorMatch(new, old, tuple(stores))


def _recipe(
    old: Operator, new: Operator, before: Store, after: Store, wish: MatchWish, ledger: Ledger
) -> Recipe:
    key = match_key(before.key, after.key, wish.told, ledger)
    gone = dropped(before.key, key)
    if new.kind in (AGGREGATION, SESSION):
        value = _aggregation(old, new, before, after, wish.told, ledger)
    elif new.kind == DEDUP and len(after.value.fields) == len(before.value.fields):
        # Its value is one column that only Spark knows the name of.
        pairs = zip(distinct(before.value).fields, distinct(after.value).fields, strict=True)
        value = tuple(take(a, b, (VALUE, a.name), wish.told, ledger) for a, b in pairs)
    else:
        value = match_struct(before.value, after.value, (VALUE,), wish.told, ledger)
    if new.kind == JOIN:
        _require_some(before, after, value, ledger)
    return Recipe(key, value, _merge(new, after, gone, wish, ledger))


def _require_some(before: Store, after: Store, value: tuple[Column, ...], ledger: Ledger) -> None:
    if before.value.fields and not any(column.source for column in value):
        raise NotCarried(
            f"{ledger.where}: no column of {after.name} is one of the old ones",
            "The sides of the join are others now, or its columns all have other names.",
            "Say which is which: --rename OLD=NEW, for each.",
        )


def _merge(
    new: Operator, after: Store, gone: tuple[str, ...], wish: MatchWish, ledger: Ledger
) -> Mapping[str, str] | None:
    if not gone:
        return None
    columns = ", ".join(gone)
    if new.kind == DEDUP:
        ledger.note(
            f"{columns} is no part of the key any more: of keys that become one, the "
            "first seen stays"
        )
        return dict.fromkeys(distinct(after.value).names, "min")
    if new.kind != AGGREGATION:
        raise NotCarried(
            f"{new.words}: the key has no {columns} any more",
            f"Rows of a {new.kind} that become one cannot be merged: what they were made of "
            "is gone.",
            "Give the rows yourself with --with MIGRATION.py, or begin with an empty state: "
            "`floodmark upgrade --without-state`.",
        )
    merge = dict(wish.merge or {})
    names = distinct(after.value).names
    missing = [name for name in names if name not in merge and name not in after.key.names]
    if missing:
        raise NotCarried(
            f"{new.words}: the key has no {columns} any more, and nothing says how "
            f"{', '.join(missing)} of keys that become one are merged",
            "A sum is summed, a largest value is the largest: the columns' names do not say it.",
            f"Say it for each: {' '.join(f'--merge {name}=sum' for name in missing)} "
            f"(one of {', '.join(MERGES)}), or merge = {{…}} in --with MIGRATION.py.",
        )
    for name, how in merge.items():
        if how not in MERGES:
            raise WrongUse(f"--merge {name}={how}: there are {', '.join(MERGES)}")
        if name not in names:
            raise WrongUse(f"--merge {name}: the new state has {', '.join(names)}")
    ledger.note(f"{columns} is no part of the key any more: keys that become one are merged")
    return {name: merge.get(name, "any") for name in names}


def _aggregation(
    old: Operator, new: Operator, before: Store, after: Store, told: Told, ledger: Ledger
) -> tuple[Column, ...]:
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


def _by_function(
    old: Operator,
    new: Operator,
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    told: Told,
    ledger: Ledger,
) -> tuple[Column, ...]:
    assert old.aggregates is not None
    assert new.aggregates is not None
    places = _places(old.aggregates)
    functions = {_with_renames(one.function, told): one for one in old.aggregates}
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
        found = functions.get(one.function)
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


def _with_renames(function: str, told: Told) -> str:
    """`--rename amount=paid` also says that sum(amount) is sum(paid)."""
    import re

    for new, old in told.renames.items():
        function = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w(])", new, function)
    return function


def _told_or_new(
    one: Aggregate, mine: tuple[Any, ...], before: tuple[Any, ...], told: Told, ledger: Ledger
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
    told: Told,
    ledger: Ledger,
) -> None:
    """sum(a) went and sum(b) came: renamed, or another sum? Only the user knows."""
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
                "It may be the same under another name, or another one: the plans do not say.",
                f"If it is the same: --rename {_inside(twin.function)}={_inside(one.function)}. "
                f"If it begins anew: {defaults}.",
            )


def _inside(function: str) -> str:
    return function.partition("(")[2].removesuffix(")")


def _by_unique_names(
    before: Store,
    after: Store,
    aggregates: tuple[Aggregate, ...] | None,
    told: Told,
    ledger: Ledger,
) -> tuple[Column, ...]:
    """The old code's plan is not known: names are all there is."""
    old, new = distinct(before.value), distinct(after.value)
    same = [f.name for f in before.value.fields] == [f.name for f in after.value.fields]
    initial = _initial_values(aggregates, new)
    counts = Counter(before.value.names), Counter(after.value.names)
    columns: list[Column] = []
    for raw, wanted in zip(after.value.fields, new.fields, strict=True):
        said = told.old_name(wanted.name, (VALUE,))
        if said is not None and said in old.names:
            columns.append(take(old.field(said), wanted, (VALUE, said), told, ledger))
        elif told.default(wanted.name, (VALUE,))[0]:
            columns.append(fill(wanted, (VALUE,), told, ledger))
        elif same or (counts[0][raw.name] == counts[1][raw.name] == 1):
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


def _note_left_out(before: Store, columns: list[Column], ledger: Ledger) -> None:
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
    name: str, counts: tuple[Counter[str], Counter[str]], new: Struct, ledger: Ledger
) -> NotCarried:
    return NotCarried(
        f"{ledger.where}: the old state has {counts[0][name]} columns named {name}, the new one "
        f"{counts[1][name]}",
        "Spark calls the columns of every such aggregate alike, and nothing says which is which: "
        "this checkpoint has no note of the old code's plan.",
        "Give the old code (--from-app OLD.py), or say it for each column: --rename OLD=NEW and "
        f"--default NEW=VALUE. The new columns are {', '.join(new.names)}.",
    )


def _refuse_halves(
    aggregates: tuple[Aggregate, ...] | None, columns: list[Column], told: Told, ledger: Ledger
) -> None:
    """An average from an old sum and a new count of 0 would be wrong for every key."""
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
                f"{' and '.join(column.name for column in mine)}, and the old state has only a "
                f"{kept.name}",
                "Half of an aggregate from the old state and half of it new is a wrong result.",
                "To begin it anew, say so: "
                + " ".join(f"--default {column.name}=VALUE" for column in mine)
                + ".",
            )


def _refuse_unused(told: Told, old: Sequence[Operator], new: Sequence[Operator]) -> None:
    """A misspelt name is not silently without effect."""
    known_new = {name for one in new for store in one.stores for name in _names(store)}
    known_old = {name for one in old for store in one.stores for name in _names(store)}
    inputs = " ".join(a.function for one in (*old, *new) for a in one.aggregates or ())
    for name in told.defaults:
        if name not in known_new:
            raise WrongUse(
                f"--default {name}: the new state has no such column",
                f"It has {', '.join(sorted(known_new))}.",
            )
    for name, source in told.renames.items():
        if name not in known_new and name not in inputs:
            raise WrongUse(
                f"--rename {source}={name}: the new state has no {name}",
                f"It has {', '.join(sorted(known_new))}.",
            )
        if source not in known_old and source not in inputs:
            raise WrongUse(
                f"--rename {source}={name}: the old state has no {source}",
                f"It has {', '.join(sorted(known_old))}.",
            )


def _names(store: Store) -> set[str]:
    return set(_paths(store.key, "")) | set(_paths(store.value, ""))


def _paths(struct: Struct, prefix: str) -> list[str]:
    found = []
    for one in distinct(struct).fields:
        found += [prefix + one.name, one.name]
        if isinstance(one.type, Struct):
            found += _paths(one.type, f"{prefix}{one.name}.")
    return found
