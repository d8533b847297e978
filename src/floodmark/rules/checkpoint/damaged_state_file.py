"""Finds a state file that is empty or does not decode."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM118",
    "damaged-state-file",
    Severity.ERROR,
    finds="A delta, snapshot, changelog or zip that has no bytes, is cut short, does not decode, "
    "or does not match the checksums in its side file. --read-data reads the content.",
    matters="The state of a whole partition depends on each of these files.",
    restart="The batch that loads it fails (CANNOT_LOAD_STATE_STORE). Spark 4.2 and later skip a "
    "bad newest snapshot if an older one and all changes after it exist.",
    instead="Restore the file from a backup.",
    mends=(Mend.STATE, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for file in evidence.checkpoint.state_files:
        fault = evidence.faults.get(file.path)
        reason = "the file is empty" if file.size == 0 else fault and fault.reason
        if not reason:
            reason = _not_as_written(evidence, file.path)
        if not reason or (fault is not None and fault.newer):
            continue
        needed = file.path in evidence.needed
        yield RULE.finding(
            file.path,
            f"{file.path} is damaged: {reason}.",
            severity=Severity.ERROR if needed else Severity.WARNING,
            why=None
            if needed
            else f"{RULE.matters} The next start does not need this file; only going back to an "
            "earlier batch does.",
            repairable=not needed or evidence.state_is_to_be_had,
        )


def _not_as_written(evidence: Evidence, path: str) -> str | None:
    if path in evidence.altered:
        return "its bytes do not match the checksums in its side file"
    tables = evidence.snapshots.get(path, ())
    changed = next((table.path for table in tables if table.path in evidence.altered), None)
    return None if changed is None else f"{changed} does not match the checksums in its side file"
