"""Finds columns that are computed in another way."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM311",
    "projection-changed",
    Severity.ADVICE,
    finds="Other projections than at the last start, with the same columns for the sink.",
    matters="What went out before stays as it was. Other rules judge the columns that keys and "
    "aggregates depend on.",
    restart="The query starts; the new expressions count from the next batch on.",
    instead="Nothing.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for one in comparison.differences_of(DifferenceKind.OUTPUT):
        yield reason(RULE, Verdict.COMPATIBLE, one.what, one.where)
