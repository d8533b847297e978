"""Finds a checkpoint without a note of its last start."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM351",
    "last-start-unknown",
    Severity.WARNING,
    finds="A checkpoint without a note of the start that made its state, or with an old one "
    "that has no plan.",
    matters="Spark keeps neither plan nor sink in a checkpoint. Without a note only sources, "
    "schemas and pinned settings can be compared.",
    restart="Spark starts wherever the types of the state fit. A check without the old plan does "
    "not see other filters, another sink, output mode or join type, or aggregates and keys with "
    "another meaning.",
    instead="Give the code that made the checkpoint: --old OLD.py. Or start it with "
    "`floodmark run` or `floodmark.start`: from then on every start leaves a note.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.has_plans:
        yield reason(
            RULE,
            Verdict.UNKNOWN,
            "There is no note of the start that made this checkpoint: sources, schemas and pinned "
            f"settings were compared. Nobody has compared {', '.join(comparison.not_compared)}.",
            "_floodmark/starts",
            silent=True,
        )
