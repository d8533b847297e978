"""Finds a DStreams checkpoint that is not in the folder that its application names."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.places.plain_place import comparable_place
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM155",
    "dstreams-moved",
    Severity.WARNING,
    finds="A DStreams checkpoint whose application names another folder as its own.",
    matters="Every checkpoint file names this folder, and each saved RDD by its whole path. A "
    "copy still points to the original.",
    restart="Spark reads the application from this folder, but uses the folder that the "
    "application names for state and new checkpoints.",
    instead="Move the folder back before a recovery, or begin again with its state: floodmark "
    "run APP.py --fresh-with-state.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.checkpoint.dstreams
    if found is None or not found.directory or not evidence.places:
        return
    here = {comparable_place(place) for place in evidence.places}
    if comparable_place(found.directory) not in here:
        yield RULE.finding(
            found.restart_file or "",
            f"The application says that its checkpoint is at {found.directory}.",
        )
