"""Finds a changed kind of timeout in the state of groups."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import GROUP_STATES, Comparison, families
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import names

RULE = Rule(
    "FM334",
    "timeout-kind-changed",
    Severity.ERROR,
    finds="flatMapGroupsWithState or applyInPandasWithState with another timeout than before.",
    matters="A timeout is kept beside the state, as a moment of the clock or of event time.",
    restart="If the timeout is added or removed, Spark refuses, because the state has one column "
    "more or fewer. Between the clock and event time it starts without a warning and reads one as "
    "the other.",
    instead="`floodmark migrate` adds or leaves out the column; between the two kinds give "
    "it a function with --with that sets the timeouts again.",
)


_TIMEOUT = "timeoutTimestamp"


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(GROUP_STATES):
        for _, before, after in families(held, new):
            had, has = _TIMEOUT in names(before.value_json), _TIMEOUT in names(after.value_json)
            if had != has:
                yield reason(
                    RULE,
                    Verdict.NEEDS_MIGRATION,
                    f"The new code has {'a' if has else 'no'} timeout, but the state has "
                    f"{'one' if had else 'none'}.",
                    f"{STATE}/{held.operator}",
                    silent=comparison.is_unchecked(held.operator),
                )
                return
    yield from _by_plan(comparison)


def _by_plan(comparison: Comparison) -> Iterator[Reason]:
    for one in comparison.differences_of(DifferenceKind.TIMEOUT):
        yield reason(RULE, Verdict.NEEDS_MIGRATION, one.what, one.where, silent=True)
