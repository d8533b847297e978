"""Finds an entry of a file source's log that does not parse."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM128",
    "file-source-log-unreadable",
    Severity.ERROR,
    finds="An entry of a file source's log that is empty, cut short or garbled.",
    matters="The log is the source's memory of which files it has taken.",
    restart="Spark reads the whole log at a start, and fails at this entry.",
    instead="Restore the entry from a backup (`repair --from-backup`). If the entry is written "
    "again without its files, the source treats the files that still exist as new.",
    repairable=True,
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, fault in evidence.faults.items():
        parts = path.split("/")
        if parts[0] == "sources" and parts[1] in evidence.seen_files and not fault.newer:
            yield RULE.finding(path, f"{path} cannot be read: {fault.reason}.")
