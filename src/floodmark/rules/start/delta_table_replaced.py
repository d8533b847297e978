"""Finds another Delta table at the place that the stream reads."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.delta.reach import DeltaTrouble
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation
from floodmark.rules.start_inputs.table import shortfalls

RULE = Rule(
    "FM409",
    "delta-table-replaced",
    Severity.ERROR,
    finds="A Delta table with another id than the checkpoint's, or one that ends before it.",
    matters="The table was dropped and recreated, or restored from an earlier copy.",
    restart="Spark fails with DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE, or waits for a "
    "version that means something else.",
    instead="Begin with a new checkpoint, or read the table that the checkpoint knows.",
)


def check(situation: Situation) -> Iterator[Finding]:
    replaced = DeltaTrouble.ANOTHER_TABLE, DeltaTrouble.VERSION_AHEAD
    for words in shortfalls(situation, *replaced):
        yield RULE.finding(situation.location, words)
