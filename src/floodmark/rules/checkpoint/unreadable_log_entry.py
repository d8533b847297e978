"""Finds an offset or commit entry that is cut short or garbled."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence, log_entry
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM105",
    "unreadable-log-entry",
    Severity.ERROR,
    finds="A file in offsets/ or commits/ that is cut short, or is not what its format says.",
    matters="What the batch took, or that it finished, is no longer known.",
    restart="A file that does not parse is fatal in every version of Spark, if it is one of the "
    "newest two offset entries or the newest commit.",
    instead="Restore it from a backup. A newest offset entry whose batch has no commit can be "
    "removed with its .crc: the batch is planned again. A commit that is removed has its batch "
    "run again.",
    repairable=True,
    mends=(Mend.GO_BACK,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, fault in evidence.faults.items():
        entry = log_entry(path)
        if entry is None or fault.empty or fault.newer:
            continue
        blocks = path in evidence.deciding
        yield RULE.finding(
            path,
            f"The entry of batch {entry[1]} in {entry[0]}/ cannot be read: {fault.reason}.",
            repairable=evidence.can_mend_entry(path),
            severity=Severity.ERROR if blocks else Severity.WARNING,
            why=None
            if blocks
            else f"{RULE.matters} Spark does not open it at a start, since "
            "later batches are there; going back to this batch is not possible.",
        )
