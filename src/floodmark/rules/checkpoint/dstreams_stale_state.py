"""Finds state of earlier DStreams runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.model import Kind
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM144",
    "dstreams-stale-state",
    Severity.ADVICE,
    finds="More than one <uuid> folder of saved RDDs in a DStreams checkpoint.",
    matters="Each run creates its own folder, and Spark removes none of them.",
    restart="Spark reads only what the newest graph names. The graph may still name RDDs of an "
    "earlier run, until they have been saved again.",
    instead="Remove older folders after the application has run for a few checkpoint intervals, "
    "or set spark.cleaner.referenceTracking.cleanCheckpoints=true.",
)
_FOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.checkpoint.kind is not Kind.DSTREAMS:
        return
    folders: dict[str, int] = {}
    for file in evidence.checkpoint.files:
        folder = file.path.split("/", 1)[0]
        if _FOLDER.fullmatch(folder):
            folders[folder] = max(folders.get(folder, 0), file.mtime_ms or 0)
    stale = sorted(folders, key=lambda folder: folders[folder])[:-1]
    if stale:
        yield RULE.finding(
            stale[0],
            f"{len(stale)} folders of saved RDDs are from earlier runs, the oldest {stale[0]}.",
        )
