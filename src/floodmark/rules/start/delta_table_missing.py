"""Finds a Delta source without a table."""

from __future__ import annotations

from floodmark.connectors.delta.reach import DeltaTrouble
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.start_inputs.table import by_trouble

RULE = Rule(
    "FM408",
    "delta-table-missing",
    Severity.ERROR,
    finds="A Delta source whose folder has no _delta_log, under a checkpoint that goes on in it.",
    matters="The table was dropped, or the path is wrong.",
    restart="The query fails at its start.",
    instead="Put the table back, or begin with a new checkpoint.",
)

check = by_trouble(RULE, DeltaTrouble.NO_TABLE, why="The checkpoint goes on in this table.")
