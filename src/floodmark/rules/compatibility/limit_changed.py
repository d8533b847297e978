"""Finds a limit() with another number."""

from __future__ import annotations

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.by_difference import by_difference
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Verdict

RULE = Rule(
    "FM337",
    "limit-changed",
    Severity.ADVICE,
    finds="limit() with another number than at the last start.",
    matters="The state is how many rows have gone out.",
    restart="The query starts. A higher limit lets more rows out; a lower one that is reached "
    "already lets out none.",
    instead="Nothing.",
)

check = by_difference(RULE, DifferenceKind.LIMIT, Verdict.COMPATIBLE)
