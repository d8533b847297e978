"""Finds code that changed where the query did not."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM350",
    "code-changed",
    Severity.ADVICE,
    finds="A file that is not the one of the last start, with the same plan.",
    matters="Functions of foreachBatch, of groups and of columns are free to change.",
    restart="It starts. Only you can judge what your functions do now.",
    instead="Nothing.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last = comparison.last
    if last is None or comparison.fingerprint is None or last.fingerprint is None:
        return
    if (
        comparison.fingerprint != last.fingerprint
        and comparison.has_plans
        and not comparison.differences
    ):
        yield reason(
            RULE, Verdict.COMPATIBLE, "The file has changed, and its plan has not.", "the code"
        )
