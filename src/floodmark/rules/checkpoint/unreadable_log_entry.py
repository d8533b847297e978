"""Finds an offset or commit entry that is cut short or garbled."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.log_entries import damaged_entries, entry_finding
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM105",
    "unreadable-log-entry",
    Severity.ERROR,
    finds="A file in offsets/ or commits/ that is cut short, or is not what its format says.",
    matters="It is no longer known what the batch read, or whether it finished.",
    restart="A file that does not parse is fatal in every version of Spark, if it is one of the "
    "newest two offset entries or the newest commit.",
    instead="Restore it from a backup. A newest offset entry whose batch has no commit can be "
    "removed with its .crc: the batch is planned again. If you remove a commit, Spark runs "
    "its batch again.",
    repairable=True,
    mends=(Mend.GO_BACK,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, entry, fault in damaged_entries(evidence):
        if not (fault.empty or fault.newer):
            what = f"{entry} cannot be read: {fault.reason}."
            yield entry_finding(RULE, evidence, path, what)
