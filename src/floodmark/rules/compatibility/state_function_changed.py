"""Finds a changed function that keeps state."""

from __future__ import annotations

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.by_difference import by_difference
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Verdict

RULE = Rule(
    "FM354",
    "state-function-changed",
    Severity.WARNING,
    finds="The function of applyInPandasWithState or the processor of transformWithState "
    "does something else than at the last start, or uses other values.",
    matters="The state was made by the old function. Only you know whether the new one "
    "understands it.",
    restart="The query starts without a warning: Spark does not look into functions.",
    instead="If the new function goes on with the old state: --accept state-function-changed "
    "(`check`), --allow state-function-changed (`run`). Otherwise `migrate --with` makes "
    "new states of the old ones.",
)

check = by_difference(RULE, DifferenceKind.CODE, Verdict.UNKNOWN)
