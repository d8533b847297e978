"""Finds a changed type of a join of two streams."""

from __future__ import annotations

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.by_difference import by_difference
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Verdict

RULE = Rule(
    "FM330",
    "join-type-changed",
    Severity.ERROR,
    finds="Another join type (inner, left, right, full, semi) than at the last start.",
    matters="An outer join remembers which rows have met a partner; an inner join does not. "
    "Spark's documentation does not allow the change.",
    restart="Spark has no check for it, and starts. With an outer join now, rows that met their "
    "partner before may come out once more, with nulls. With an inner join now, rows that wait "
    "for a partner are dropped where they would have come out with nulls.",
    instead="Start with an empty state: `floodmark upgrade CP NEW --without-state`. Rows that wait "
    "for a partner are then lost.",
)

check = by_difference(RULE, DifferenceKind.JOIN_TYPE, Verdict.NEEDS_NEW_CHECKPOINT)
