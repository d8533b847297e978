"""Finds a changed trigger."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM318",
    "trigger-changed",
    Severity.ADVICE,
    finds="A trigger that differs from the last start.",
    matters="The checkpoint does not keep when a batch begins.",
    restart="The query starts. Only continuous processing writes another offset log than batches "
    "do.",
    instead="Nothing, between triggers that run batches.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last, new = comparison.last, comparison.new
    if last is None or last.trigger == new.trigger:
        return
    continuous = "Continuous" in last.trigger, "Continuous" in new.trigger
    other = continuous[0] != continuous[1]
    yield reason(
        RULE,
        Verdict.UNKNOWN if other else Verdict.SAME,
        f"The trigger is {new.trigger}, and was {last.trigger}.",
        "the writer",
        silent=other,
        do="Use --rehearse to see whether the source reads the other's offsets." if other else None,
    )
