"""Finds code that changed although the query did not."""

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
    restart="The query starts. Only you can judge what your functions do now.",
    instead="Nothing.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last = comparison.last
    if last is None or comparison.fingerprint is None or last.fingerprint is None:
        return
    if comparison.fingerprint == last.fingerprint or not comparison.has_plans:
        return
    if last.is_drawn:
        yield from _old_code(comparison)
    elif not comparison.differences:
        yield reason(
            RULE, Verdict.COMPATIBLE, "The file has changed, but its plan has not.", "the code"
        )


def _old_code(comparison: Comparison) -> Iterator[Reason]:
    """Given with --old it is another file by itself: what counts is what no plan tells."""
    if comparison.new.sink.lower().startswith("foreach"):
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            "The file has changed, or a module that it imports. What the sink's own function does "
            "was not compared.",
            "the code",
            do="Look at what the function writes, and where: only you can judge it.",
        )
