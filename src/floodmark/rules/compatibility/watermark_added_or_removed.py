"""A watermark that was not there, or is not any more."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM327",
    "watermark-added-or-removed",
    Severity.WARNING,
    finds="More or fewer withWatermark than at the last start.",
    matters="Without a watermark no state ever goes; with one, late rows are dropped.",
    restart="It starts. One that comes begins at zero and lets old state go as soon as it "
    "passes; where one is gone, state only grows.",
    instead="Nothing, if that is meant.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if comparison.last is None or comparison.last.tree is None:
        return
    before = len(comparison.last.tree.watermarks)
    after = len(comparison.new.tree.watermarks)
    if before != after:
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"The new code has {after or 'no'} watermark{'s' * (after > 1)}, and had "
            f"{before or 'none'}.",
            "the plan's watermark",
            silent=True,
        )
