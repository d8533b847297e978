"""Finds an entry in a format that only a newer Spark writes."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM106",
    "newer-log-version",
    Severity.ERROR,
    finds="A file whose version line names a format newer than this release knows.",
    matters="A newer Spark wrote it, or its first line was damaged.",
    restart="A Spark that does not know the version refuses the file "
    "(INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION).",
    instead="Start the query with the Spark that wrote it. If none did, the file is damaged: "
    "restore it from a backup.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, fault in evidence.faults.items():
        if fault.newer:
            yield RULE.finding(path, f"{path} has a {fault.reason}.")
