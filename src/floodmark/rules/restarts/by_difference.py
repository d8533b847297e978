"""Makes the checks of rules that report one kind of difference between two plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from floodmark.rules.finding import Rule
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason


def by_difference(
    rule: Rule, kind: DifferenceKind, verdict: Verdict
) -> Callable[[Comparison], Iterator[Reason]]:
    """Return a check with one verdict. Spark says nothing of a difference that is not fine."""

    def check(comparison: Comparison) -> Iterator[Reason]:
        for one in comparison.differences_of(kind):
            silent = verdict is not Verdict.COMPATIBLE
            yield reason(rule, verdict, one.what, one.where, silent=silent)

    return check
