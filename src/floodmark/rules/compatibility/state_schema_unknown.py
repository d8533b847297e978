"""Finds a stateful operator without a readable schema file."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM338",
    "state-schema-unknown",
    Severity.WARNING,
    finds="A stateful operator without a schema file that could be read.",
    matters="Spark before 3.1 wrote none, and a lost one is not written again until a start.",
    restart="Spark compares nothing and starts. If the schema differs, the query fails later or "
    "misreads the state.",
    instead="Run `floodmark check CP APP.py --rehearse` to see what Spark does.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs():
        if not held.stores and new.stores:
            yield reason(
                RULE,
                Verdict.UNKNOWN,
                f"Operator {held.operator} has no schema to compare with.",
                f"{STATE}/{held.operator}",
                silent=True,
            )
