"""Another limit."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM337",
    "limit-changed",
    Severity.ADVICE,
    finds="limit() with another number than at the last start.",
    matters="The state is how many rows have gone out.",
    restart="It starts. A higher limit lets more rows out; a lower one that is reached "
    "already lets out none.",
    instead="Nothing.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.has_plans or comparison.last is None:
        return
    before = [one.details.get("limit") for one in comparison.last.nodes_of("GlobalLimit")]
    after = [one.details.get("limit") for one in comparison.new.nodes_of("GlobalLimit")]
    if len(before) == len(after) and before != after:
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"The limit is {', '.join(map(str, after))}, and was {', '.join(map(str, before))}.",
            "the plan's limit",
        )
