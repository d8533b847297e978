"""Finds an in-flight batch that other code will finish."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM349",
    "in-flight-under-new-code",
    Severity.ADVICE,
    finds="A batch that was planned and not committed, and a plan that has changed since.",
    matters="The batch may have been written in part, or whole, by the old code.",
    restart="Spark runs it again over the same range, with the new code. A sink that "
    "recognises the batch keeps what the old code wrote; another gets both.",
    instead="Nothing, if the sink can take either. Otherwise let the old code finish the "
    "batch first.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    batch = comparison.checkpoint.in_flight_batch
    if batch is not None and comparison.differences:
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"Batch {batch} was begun by the old code and will be run again by the new.",
            f"{OFFSETS}/{batch}",
            silent=True,
        )
