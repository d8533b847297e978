"""Finds a changed computation of rows that reach a state, if no other rule covers it."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import JOIN_TIMED_VALUES, JOIN_VALUES
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import JOINS, Comparison, families
from floodmark.rules.restarts.difference_words import state_words
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import renamed, types_differ

RULE = Rule(
    "FM353",
    "rows-made-another-way",
    Severity.ERROR,
    finds="A difference between the plans below a stateful operator that no other rule "
    "accounts for: a generator, a static join, a union, a step added or taken away.",
    matters="The state holds what the old steps made of the records so far. Spark compares "
    "the types of the state and nothing else.",
    restart="The query starts without a warning. New rows are made in the new way, and rows in "
    "the state were made in the old way.",
    instead="If one state may hold both: --accept rows-made-another-way (`check`), --allow "
    "rows-made-another-way (`run`). Otherwise `floodmark upgrade CP NEW --without-state` "
    "begins with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for one in comparison.differences:
        if one.kind is DifferenceKind.JOIN_COLUMNS and _is_said(comparison):
            continue
        if one.kind is DifferenceKind.OPERATORS and not comparison.same_operators:
            continue  # another rule reports it by the state itself
        if one.kind in (DifferenceKind.ROWS, DifferenceKind.JOIN_COLUMNS, DifferenceKind.OPERATORS):
            fed = (
                f" It feeds {state_words(one.feeds)}."
                if one.feeds and one.kind is DifferenceKind.ROWS
                else ""
            )
            yield reason(RULE, Verdict.UNKNOWN, f"{one.what}{fed}", one.where, silent=True)


def _is_said(comparison: Comparison) -> bool:
    """Whether the state shows other column types or names; another rule reports those."""
    return any(
        types_differ(before.value_json, after.value_json)
        or renamed(before.value_json, after.value_json)
        for held, new in comparison.pairs_of(JOINS)
        for store, before, after in families(held, new)
        if store.endswith((JOIN_VALUES, JOIN_TIMED_VALUES))
    )
