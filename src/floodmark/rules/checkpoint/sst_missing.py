"""Finds a missing RocksDB table that a snapshot names."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM119",
    "sst-missing",
    Severity.ERROR,
    finds="A table or log file (SSTs/, logs/) that a snapshot's zip names and the folder lacks.",
    matters="The zip holds only RocksDB's manifest; the rows are in the tables, which several "
    "snapshots share.",
    restart="The first batch fails while fetching the snapshot (CANNOT_LOAD_STATE_STORE).",
    instead="Restore the file from a backup, or go back to a batch whose snapshot does not name "
    "it.",
    mends=(Mend.STATE, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for snapshot, table, needed in evidence.snapshot_tables:
        if table.path not in evidence.sizes:
            yield RULE.finding(
                table.path,
                f"{snapshot} names {table.path}, which does not exist.",
                severity=Severity.ERROR if needed else Severity.WARNING,
                repairable=not needed or evidence.state_is_to_be_had,
            )
