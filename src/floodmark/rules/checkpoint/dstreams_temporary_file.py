"""Finds a DStreams checkpoint file whose write was interrupted."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.model import Kind
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM142",
    "dstreams-temporary-file",
    Severity.ADVICE,
    finds="`temp` in a DStreams checkpoint, or hidden attempt files of its RDDs, an hour old or "
    "more.",
    matters="A write was interrupted, so its checkpoint file does not exist.",
    restart="Spark falls back to the checkpoint before it, and removes `temp` at its next write.",
    instead="Nothing. Hidden attempt files can be removed while the application is stopped.",
)
_WRITTEN_WITHIN_MS = 3_600_000


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.checkpoint.kind is not Kind.DSTREAMS:
        return
    old = evidence.now_ms - _WRITTEN_WITHIN_MS
    left = [
        file
        for file in evidence.checkpoint.files
        if (file.path == "temp" or "-attempt-" in file.path.rsplit("/", 1)[-1])
        and (file.mtime_ms or 0) < old
    ]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        yield RULE.finding(left[0].path, f"{left[0].path}{more}: the write was never finished.")
