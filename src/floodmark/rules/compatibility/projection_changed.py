"""Finds columns that are computed in another way."""

from __future__ import annotations

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.by_difference import by_difference
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Verdict

RULE = Rule(
    "FM311",
    "projection-changed",
    Severity.ADVICE,
    finds="Other projections than at the last start, with the same columns for the sink.",
    matters="What went out before stays as it was. Other rules judge the columns that keys and "
    "aggregates depend on.",
    restart="The query starts; the new expressions count from the next batch on.",
    instead="Nothing.",
)

check = by_difference(RULE, DifferenceKind.OUTPUT, Verdict.COMPATIBLE)
