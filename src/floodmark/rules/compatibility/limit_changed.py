"""Finds a limit() with another number."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM337",
    "limit-changed",
    Severity.ADVICE,
    finds="limit() with another number than at the last start.",
    matters="The state is how many rows have gone out.",
    restart="The query starts. A higher limit lets more rows out; a lower one that is reached "
    "already lets out none.",
    instead="Nothing.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for one in comparison.differences_of(DifferenceKind.LIMIT):
        yield reason(RULE, Verdict.COMPATIBLE, one.what, one.where)
