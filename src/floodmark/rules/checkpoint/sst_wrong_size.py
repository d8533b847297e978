"""Finds a RocksDB table whose length differs from its snapshot's entry."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM120",
    "sst-wrong-size",
    Severity.ERROR,
    finds="A table or log file whose length differs from what the snapshot's zip says of it.",
    matters="Tables are copied without a rename, so a crash can leave half of one; and two tasks "
    "that wrote the same version may have mixed their files.",
    restart="Spark compares the lengths when it fetches the snapshot, and fails "
    "(UNEXPECTED_FILE_SIZE).",
    instead="Restore the file from a backup, or go back to a batch whose snapshot does not name "
    "it.",
    mends=(Mend.STATE, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for snapshot, table, needed in evidence.snapshot_tables:
        found = evidence.sizes.get(table.path, table.size)
        if found != table.size:
            yield RULE.finding(
                table.path,
                f"{table.path} has {found:,} bytes; {snapshot} says {table.size:,}.",
                severity=Severity.ERROR if needed else Severity.WARNING,
                repairable=not needed or evidence.state_is_to_be_had,
            )
