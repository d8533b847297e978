"""Finds an offset or commit entry of no bytes."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence, log_entry
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM104",
    "empty-log-entry",
    Severity.ERROR,
    finds="A file in offsets/ or commits/ that has no bytes.",
    matters="A crash or a full disk stopped its write half way, on storage that does not rename "
    "whole files.",
    restart="Spark opens the newest entries and stops at 'Incomplete log file'.",
    instead="Remove the file and its hidden .crc. An offset entry is then planned again; without "
    "its commit, the batch is run again over the same offsets.",
    repairable=True,
    mends=(Mend.GO_BACK,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, fault in evidence.faults.items():
        entry = log_entry(path)
        if entry is None or not fault.empty:
            continue
        blocks = path in evidence.deciding
        yield RULE.finding(
            path,
            f"The entry of batch {entry[1]} in {entry[0]}/ is empty.",
            repairable=evidence.can_mend_entry(path),
            severity=Severity.ERROR if blocks else Severity.WARNING,
            why=None
            if blocks
            else f"{RULE.matters} Spark does not open it at a start, since "
            "later batches are there; going back to this batch is not possible.",
            do=None if blocks else "Nothing has to be done; Spark removes it with old batches.",
        )
