"""Finds an offset or commit entry without content."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.log_entries import damaged_entries, entry_finding
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM104",
    "empty-log-entry",
    Severity.ERROR,
    finds="A file in offsets/ or commits/ that has no bytes.",
    matters="A crash or a full disk interrupted its write, on storage that does not rename whole "
    "files.",
    restart="Spark opens the newest entries and stops at 'Incomplete log file'.",
    instead="Remove the file and its hidden .crc. Spark then plans the batch of a removed offset "
    "entry again. It runs the batch of a removed commit again, over the same offsets.",
    repairable=True,
    mends=(Mend.GO_BACK,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, entry, fault in damaged_entries(evidence):
        if fault.empty:
            do_if_old = "Do nothing; Spark removes the file with old batches."
            yield entry_finding(RULE, evidence, path, f"{entry} is empty.", do_if_old)
