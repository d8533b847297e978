"""Finds a Delta source without a table."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.delta.reach import DeltaTrouble
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation
from floodmark.rules.start_inputs.table import shortfalls

RULE = Rule(
    "FM408",
    "delta-table-missing",
    Severity.ERROR,
    finds="A Delta source whose folder has no _delta_log, under a checkpoint that goes on in it.",
    matters="The table was dropped, or the path is wrong.",
    restart="The query fails at its start.",
    instead="Put the table back, or begin with a new checkpoint.",
)


def check(situation: Situation) -> Iterator[Finding]:
    for words in shortfalls(situation, DeltaTrouble.NO_TABLE):
        yield RULE.finding(situation.location, words, why="The checkpoint goes on in this table.")
