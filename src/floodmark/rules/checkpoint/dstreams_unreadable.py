"""Finds a DStreams checkpoint file that cannot be what Spark wrote."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import is_dstreams_checkpoint
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM143",
    "dstreams-unreadable",
    Severity.WARNING,
    finds="A checkpoint-<time> file that is empty, cut short, or no stream that Spark writes.",
    matters="It holds the application's whole graph; a damaged one is passed over.",
    restart="Spark reads from the newest back and takes the first that it can read. If none can "
    "be read, getOrCreate fails.",
    instead="Restore the newest file from a backup; else the batches since the last sound one "
    "are run again.",
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
    """What Spark falls back to from this file."""
    found = evidence.checkpoint.dstreams
    newest_first = [file.path for file in reversed(found.graph_files)] if found else []
    older = newest_first[newest_first.index(path) + 1 :] if path in newest_first else []
    sound = next((one for one in older if one not in evidence.faults), None)
    if sound is not None:
        return f"The next older one that can be read is {sound}."
    return "There is no older one that can be read."
