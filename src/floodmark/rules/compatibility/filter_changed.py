"""Filters added, removed or changed."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM310",
    "filter-changed",
    Severity.ADVICE,
    finds="Other filters than at the last start.",
    matters="Records that a filter left out are not read again, and what is in the state "
    "stays in it.",
    restart="It starts; the new filters count from the next batch on.",
    instead="Nothing. To have the past filtered anew, `floodmark rewind`.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.has_plans or comparison.last is None:
        return
    before = [one.details.get("condition") for one in comparison.last.nodes_of("Filter")]
    after = [one.details.get("condition") for one in comparison.new.nodes_of("Filter")]
    added = [one for one in after if one not in before]
    gone = [one for one in before if one not in after]
    if added or gone:
        words = [f"adds {one}" for one in added] + [f"leaves out {one}" for one in gone]
        yield reason(
            RULE, Verdict.COMPATIBLE, f"The new code {', '.join(words)}.", "the plan's filters"
        )
