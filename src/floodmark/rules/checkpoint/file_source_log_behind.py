"""Finds a file source that has forgotten files that it has read."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.file_sources import file_sources
from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.errors import MalformedFile
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM129",
    "file-source-log-behind",
    Severity.ERROR,
    finds="A file source whose log ends before the entry that the offset log names.",
    matters="The source writes its log first and the offset after it, so entries were lost.",
    restart="The files of the lost entries are new to the source: it reads them again.",
    instead="Restore sources/ from a backup.",
    repairable=True,
    mends=(Mend.SEEN_FILES,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    newest = max(evidence.positions, default=None)
    for source in file_sources(evidence, newest) if newest is not None else ():
        try:
            wanted = parse_log_offset(source.offset)
        except MalformedFile:
            continue
        seen = evidence.seen_files.get(source.id, -1)
        if wanted > seen and evidence.checkpoint.twin_of(source.id) is None:
            has = "is gone" if seen < 0 else f"ends at {seen}"
            yield RULE.finding(
                f"{SOURCES}/{source.id}",
                f"Batch {newest} took entry {wanted} of source {source.id}'s list of files, but "
                f"the list {has}.",
            )
