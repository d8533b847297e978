"""Finds a changed condition of a join of two streams."""

from __future__ import annotations

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.by_difference import by_difference
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Verdict

RULE = Rule(
    "FM331",
    "join-condition-changed",
    Severity.WARNING,
    finds="A join condition that differs from the last start, with keys of the same types.",
    matters="Rows in the state were kept by the old equalities, and for as long as the old "
    "condition needed them.",
    restart="The query starts without a warning. Spark's documentation calls the result "
    "ill-defined: rows that the new condition needs may be gone.",
    instead="If only a name changed, nothing. Otherwise begin with an empty state: "
    "`floodmark upgrade CP NEW --without-state`.",
)

check = by_difference(RULE, DifferenceKind.JOIN_CONDITION, Verdict.UNKNOWN)
