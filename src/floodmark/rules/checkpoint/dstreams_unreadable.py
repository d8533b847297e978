"""Finds a DStreams checkpoint file that is not in a form that Spark writes."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import is_dstreams_checkpoint
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM143",
    "dstreams-unreadable",
    Severity.WARNING,
    finds="A checkpoint-<time> file that is empty, cut short, or not in a form that Spark writes.",
    matters="The file holds the application's whole graph. Spark skips a damaged one.",
    restart="Spark tries the newest file first, and loads the first one that it can read. If it "
    "can read none, getOrCreate fails.",
    instead="Restore the newest file from a backup. Otherwise Spark runs the batches after the "
    "last readable file again.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    broken = {
        path: fault for path, fault in evidence.faults.items() if is_dstreams_checkpoint(path)
    }
    graphs = sum(is_dstreams_checkpoint(path) for path in evidence.sizes)
    for path, fault in broken.items():
        yield RULE.finding(
            path,
            f"{path} cannot be read: {fault.reason.rstrip('.')}. {_instead_of(path, evidence)}",
            severity=Severity.ERROR if len(broken) == graphs else None,
        )


def _instead_of(path: str, evidence: Evidence) -> str:
    """Return the file that Spark falls back to, in words."""
    found = evidence.checkpoint.dstreams
    newest_first = [file.path for file in reversed(found.graph_files)] if found else []
    older = newest_first[newest_first.index(path) + 1 :] if path in newest_first else []
    sound = next((one for one in older if one not in evidence.faults), None)
    if sound is not None:
        return f"The next older file that can be read is {sound}."
    return "There is no older file that can be read."
