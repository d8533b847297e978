"""Finds another Delta table at the place that the stream reads."""

from __future__ import annotations

from floodmark.connectors.delta.reach import DeltaTrouble
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.start_inputs.table import by_trouble

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

check = by_trouble(RULE, DeltaTrouble.ANOTHER_TABLE, DeltaTrouble.VERSION_AHEAD)
