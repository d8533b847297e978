"""Matches the old code's operators to the new code's, and decides how rows are carried. Pure.

Operators are matched by kind and order, their stores and columns by name; `aggregate_columns`
matches the columns of an aggregation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from floodmark.changes.matching.aggregate_columns import match_aggregation
from floodmark.changes.matching.fields import (
    ColumnNotes,
    ColumnOptions,
    dropped,
    match_key,
    match_struct,
    take,
)
from floodmark.changes.matching.merged_keys import SEEN, merge_rules
from floodmark.changes.matching.shapes import OperatorShape, StoreShape
from floodmark.checkpoint.operator_kinds import (
    AGGREGATION,
    GROUPS,
    JOIN,
    SESSION,
    UNKNOWN,
    VARIABLES,
    paired,
    unclear_kind,
)
from floodmark.errors import NotCarried, WrongUse
from floodmark.state.rows.types import Struct, distinct
from floodmark.state.shapes.reshape import VALUE, Column, Recipe

DROPPED_OPERATOR = "dropped-operator"
DROPPED_KEYS = "dropped-keys"
DROPPED_FIELD = "dropped-field"
ACCEPTED = (DROPPED_OPERATOR, DROPPED_KEYS, DROPPED_FIELD)
_TIMERS = ("$procTimers_keyToTimestamp", "$eventTimers_keyToTimestamp")
_TTL = "ttlExpirationMs"
_TIMEOUT = "timeoutTimestamp"
_MATCHED = "matched"
"""A column that Spark adds to joins."""


@dataclass(frozen=True)
class StoreMatch:
    store: str
    """The store or column family, with the same name in both."""
    recipe: Recipe | None
    """None: a user's function makes the rows."""
    old: StoreShape
    new: StoreShape
    by_function: bool = False
    """True where keys become equal, and a user's function merges their rows."""


@dataclass(frozen=True)
class OperatorMatch:
    new: OperatorShape
    old: OperatorShape | None
    """None: the operator is new and starts empty."""
    stores: tuple[StoreMatch, ...] = ()


@dataclass(frozen=True)
class Matching:
    operators: tuple[OperatorMatch, ...]
    removed: tuple[OperatorShape, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MatchOptions:
    told: ColumnOptions = field(default_factory=ColumnOptions)
    accept: frozenset[str] = frozenset()
    merge: Mapping[str, str] | None = None
    given: frozenset[tuple[int, str]] = frozenset()
    """Each (new operator, store) whose rows a user's function makes."""
    merging: frozenset[int] = frozenset()
    """New operators whose keys may become equal, with a user's function to merge their rows."""


def match(
    old: Sequence[OperatorShape], new: Sequence[OperatorShape], options: MatchOptions
) -> Matching:
    _refuse_unused(options.told, old, new)
    pairs, removed = _pairs(old, new)
    notes: list[str] = []
    if removed and DROPPED_OPERATOR not in options.accept:
        gone = ", ".join(one.words for one in removed)
        raise NotCarried(
            f"the new code has no {gone}: that state would be dropped",
            "Its content cannot be recovered from this checkpoint.",
            f"If you intend that: --accept {DROPPED_OPERATOR}.",
        )
    notes += [f"The state of {one.words} is dropped." for one in removed]
    matched = []
    for mine, theirs in pairs:
        if theirs is None:
            notes.append(f"{mine.words} is new: it starts empty, and knows no record before.")
            matched.append(OperatorMatch(mine, None))
            continue
        matched.append(_operator(theirs, mine, options, notes))
    _refuse_idle_merge(matched, options)
    return Matching(tuple(matched), removed, tuple(notes))


def _refuse_idle_merge(matched: list[OperatorMatch], options: MatchOptions) -> None:
    recipes = [store.recipe for one in matched for store in one.stores]
    merged = any(store.by_function for one in matched for store in one.stores)
    if options.merging and not options.given and not merged:
        raise WrongUse(
            "merge: no keys become one",
            "The new code groups by all that the old code did, or what it keeps is not merged.",
            "Leave the function out.",
        )
    if options.merge and not options.given and not any(one and one.merge for one in recipes):
        raise WrongUse(
            f"--merge {next(iter(options.merge))}: no keys become one",
            "The new code groups by all that the old code did.",
            "Leave the option out.",
        )


def _pairs(
    old: Sequence[OperatorShape], new: Sequence[OperatorShape]
) -> tuple[list[tuple[OperatorShape, OperatorShape | None]], tuple[OperatorShape, ...]]:
    for one in (*old, *new):
        if one.kind == UNKNOWN:
            raise NotCarried(
                f"{one.words}: floodmark does not know the state of such an operator",
                "Only Spark's own operators can be carried over.",
                "Begin with an empty state: `floodmark upgrade CP NEW --without-state`.",
            )
    before, after = [one.kind for one in old], [one.kind for one in new]
    kind = unclear_kind(before, after)
    if kind is not None:
        raise NotCarried(
            f"the old code has {before.count(kind)} operators of kind {kind}, the new one "
            f"{after.count(kind)}",
            "Floodmark cannot tell which of them is which.",
            "Make the change in two steps, one operator at a time.",
        )
    places = paired(before, after)
    pairs = [(mine, None if at is None else old[at]) for mine, at in zip(new, places, strict=True)]
    return pairs, tuple(one for at, one in enumerate(old) if at not in places)


def _operator(
    old: OperatorShape, new: OperatorShape, options: MatchOptions, notes: list[str]
) -> OperatorMatch:
    if new.kind == JOIN:
        _refuse_swapped_sides(old, new)
    ledger = ColumnNotes(new.words)
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
        given = (new.number, store.name) in options.given
        if given:
            stores.append(StoreMatch(store.name, None, before, store))
            continue
        if new.kind in (GROUPS, VARIABLES):
            _refuse_other_expiry(before, store, ledger)
            _require_accepted(_lost(before.value, store.value, options.told), options, ledger)
        mine = _of_side(ledger, store) if new.kind == JOIN else ledger
        stores.append(_store(old, new, before, store, options, mine))
    names = {store.name for store in new.stores}
    gone = [name for name in theirs if name not in names and not name.startswith("$")]
    timers = any(name in theirs and name not in names for name in _TIMERS)
    if gone or timers:
        lost = [f"the variable {one}" for one in gone] + ["timers"] * timers
        _require_accepted(lost, options, ledger)
        ledger.note(f"{', '.join(lost)} is left out")
    notes += ledger.notes
    return OperatorMatch(new, old, tuple(stores))


def _refuse_other_expiry(before: StoreShape, after: StoreShape, ledger: ColumnNotes) -> None:
    """Refuse an added or removed TTL: an expiring value has another form, and an index of times."""
    had, has = _TTL in before.value.names, _TTL in after.value.names
    if had == has:
        return
    raise NotCarried(
        f"{ledger.where}: {after.name} {'has' if has else 'has no'} TTL in the new code, and had "
        f"{'one' if had else 'none'}",
        "Old values have no expiry time; carried as they are, they would be lost.",
        "Keep the TTL as it was. Or read the old values (floodmark state CP --store "
        f"{after.name} --export FILE.parquet) into a variable of another name.",
    )


def _lost(old: Struct, new: Struct, told: ColumnOptions) -> list[str]:
    """Return the fields of the old value that the new code does not keep."""
    sources = {one.rsplit(".", 1)[-1] for one in told.renames.values()}
    kept = {*sources, _TIMEOUT, _TTL}
    before, after = distinct(old), distinct(new)
    gone = [one for one in before.fields if one.name not in after.names and one.name not in kept]
    came = [one for one in after.fields if one.name not in before.names]
    # A single gone field and a single new one of the same type count as renamed; a note says so.
    renamed = len(gone) == len(came) == 1 and gone[0].type == came[0].type
    found = [] if renamed else [one.name for one in gone]
    for one in before.fields:
        if one.name in after.names:
            other = after.field(one.name)
            if isinstance(one.type, Struct) and isinstance(other.type, Struct):
                found += _lost(one.type, other.type, told)
    return found


def _require_accepted(lost: list[str], options: MatchOptions, ledger: ColumnNotes) -> None:
    if lost and DROPPED_FIELD not in options.accept:
        raise NotCarried(
            f"{ledger.where}: the new code does not keep {', '.join(lost)}: that would be dropped",
            "Its content cannot be recovered from this checkpoint.",
            f"If it has another name now: --rename OLD=NEW. If you intend it: --accept "
            f"{DROPPED_FIELD}.",
        )


def _of_side(ledger: ColumnNotes, store: StoreShape) -> ColumnNotes:
    """Name the side of a join, as both sides may have a column with the same name."""
    return ColumnNotes(f"{ledger.where}, {store.name.partition('-')[0]} side", ledger.notes)


def _store(
    old: OperatorShape,
    new: OperatorShape,
    before: StoreShape,
    after: StoreShape,
    options: MatchOptions,
    ledger: ColumnNotes,
) -> StoreMatch:
    key = match_key(before.key, after.key, options.told, ledger)
    gone = dropped(before.key, key)
    if new.kind in (AGGREGATION, SESSION):
        value = match_aggregation(old, new, before, after, options.told, ledger)
    elif new.kind in SEEN and len(after.value.fields) == len(before.value.fields):
        # Its value is one column that only Spark knows the name of.
        pairs = zip(distinct(before.value).fields, distinct(after.value).fields, strict=True)
        value = tuple(take(a, b, (VALUE, a.name), options.told, ledger) for a, b in pairs)
    else:
        value = match_struct(before.value, after.value, (VALUE,), options.told, ledger)
    if new.kind == JOIN:
        _require_some(before, after, value, ledger)
    by_function = bool(gone) and new.number in options.merging and new.kind in (AGGREGATION, GROUPS)
    if by_function:
        ledger.note(
            f"{', '.join(gone)} is no part of the key any more: keys that become one are merged "
            "by the function"
        )
    merge = None if by_function else merge_rules(new, after, gone, options.merge, ledger)
    return StoreMatch(after.name, Recipe(key, value, merge), before, after, by_function)


def _refuse_swapped_sides(old: OperatorShape, new: OperatorShape) -> None:
    before, after = (
        [
            sorted(
                name
                for store in one.stores
                if store.name.startswith(side)
                for name in distinct(store.value).names
            )
            for side in ("left", "right")
        ]
        for one in (old, new)
    )
    if before != after and before == after[::-1]:
        raise NotCarried(
            f"{new.words}: its sides have changed places",
            "The rows of each side would be read as the other's, and so would the positions of "
            "their sources.",
            "Write the join as before, with the same stream on the left; changing it to the "
            "mirrored "
            "outer join needs a new checkpoint.",
        )


def _require_some(
    before: StoreShape, after: StoreShape, value: tuple[Column, ...], ledger: ColumnNotes
) -> None:
    # A column that Spark adds says nothing about the side's own columns.
    own = [column for column in value if column.name != _MATCHED]
    if before.value.fields and not any(column.source for column in own):
        raise NotCarried(
            f"{ledger.where}: no column of {after.name} is one of the old ones",
            "The sides of the join have changed, or all its columns have other names.",
            "Match them by name: --rename OLD=NEW, for each column.",
        )


def _refuse_unused(
    told: ColumnOptions, old: Sequence[OperatorShape], new: Sequence[OperatorShape]
) -> None:
    """Refuse a misspelt name, which would have no effect."""
    known_new = {name for one in new for store in one.stores for name in _names(store)}
    known_old = {name for one in old for store in one.stores for name in _names(store)}
    inputs = " ".join(a.function for one in (*old, *new) for a in one.aggregates or ())
    for name in told.defaults:
        if name not in known_new:
            raise WrongUse(
                f"--default {name}: the new state has no such column",
                f"It has {', '.join(sorted(known_new))}.",
                "Name one of these.",
            )
    for name, source in told.renames.items():
        if name not in known_new and name not in inputs:
            raise WrongUse(
                f"--rename {source}={name}: the new state has no {name}",
                f"It has {', '.join(sorted(known_new))}.",
                "Name one of these.",
            )
        if source not in known_old and source not in inputs:
            raise WrongUse(
                f"--rename {source}={name}: the old state has no {source}",
                f"It has {', '.join(sorted(known_old))}.",
                "Name one of these.",
            )


def _names(store: StoreShape) -> set[str]:
    return set(_paths(store.key, "")) | set(_paths(store.value, ""))


def _paths(struct: Struct, prefix: str) -> list[str]:
    found = []
    for one in distinct(struct).fields:
        found += [prefix + one.name, one.name]
        if isinstance(one.type, Struct):
            found += _paths(one.type, f"{prefix}{one.name}.")
    return found
