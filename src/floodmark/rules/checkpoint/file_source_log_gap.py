"""Finds a gap in a file source's list of seen files."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES, names_in
from floodmark.connectors.files.file_log import missing_ids
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM127",
    "file-source-log-gap",
    Severity.ERROR,
    finds="An entry missing after the newest compaction of a file source's log.",
    matters="The log is the source's memory of which files it has taken.",
    restart="Spark reads the whole log at a start, and fails at the hole.",
    instead="Restore the entry from a backup (`repair --from-backup`). If the entry is written "
    "again without its files, the source treats the files that still exist as new.",
    repairable=True,
    mends=(Mend.SEEN_FILES,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for source in evidence.seen_files:
        folder = f"{SOURCES}/{source}"
        missing = missing_ids(names_in(evidence.checkpoint.files, folder))
        if missing:
            names = f"entry {missing[0]}" + (
                f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
            )
            yield RULE.finding(
                f"{folder}/{missing[0]}",
                f"Source {source}: {names} missing from its list of seen files.",
            )
