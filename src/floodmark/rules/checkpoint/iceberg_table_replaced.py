"""Finds another Iceberg table at the place that the stream reads."""

from __future__ import annotations

from floodmark.connectors.iceberg.reach import IcebergTrouble
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.start_inputs.snapshot import by_trouble

RULE = Rule(
    "FM158",
    "iceberg-table-replaced",
    Severity.ERROR,
    finds="With --sources: an Iceberg table that has lost no snapshot and does not have the "
    "stream's, or whose current snapshot does not come from it.",
    matters="The table was dropped and created again, replaced (CREATE OR REPLACE TABLE) or "
    "rolled back, or another table is at this place. An Iceberg offset does not name its "
    "table, so only the snapshots show this.",
    restart="The query fails: Iceberg finds neither the snapshot nor one that follows it.",
    instead="Read the table that the checkpoint knows, or begin with a new checkpoint.",
)

check = by_trouble(RULE, IcebergTrouble.REPLACED)
