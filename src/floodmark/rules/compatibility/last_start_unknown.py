"""No note of how the query was started last."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM351",
    "last-start-unknown",
    Severity.ADVICE,
    finds="A checkpoint without notes of `floodmark run` or `floodmark.start`, or with "
    "old ones that have no plan.",
    matters="Spark keeps neither plan nor sink in a checkpoint. Without a note only sources "
    "and state can be compared.",
    restart="Changes of filters, sinks, output mode, join type, and the meaning of "
    "aggregates show no sign here.",
    instead="Start with `floodmark run` or `floodmark.start`: from then on every start "
    "leaves a note.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.has_plans:
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            "There is no note of the last start: sources and state were compared, and nothing "
            "else could be.",
            "_floodmark/starts",
        )
