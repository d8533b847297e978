"""Finds a file source's list of seen files that has grown large."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM141",
    "large-file-source-log",
    Severity.ADVICE,
    finds="A compaction of a file source's log above 10 MB.",
    matters="The list of seen files is never shortened: every tenth batch writes all of it again.",
    restart="The start reads it whole, into the driver's memory.",
    instead="Begin a new checkpoint after the last committed batch now and then "
    "(`floodmark upgrade`), with files that are done moved away, or read a table format.",
)
_LARGE = 10_000_000


def check(evidence: Evidence) -> Iterator[Finding]:
    for source in evidence.seen_files:
        folder = f"{SOURCES}/{source}/"
        compacted = {
            path: size
            for path, size in evidence.sizes.items()
            if path.startswith(folder) and path.endswith(".compact")
        }
        largest = max(compacted, key=lambda path: compacted[path], default=None)
        if largest is not None and compacted[largest] > _LARGE:
            yield RULE.finding(
                largest,
                f"{largest} has {compacted[largest]:,} bytes, written again every tenth batch.",
            )
