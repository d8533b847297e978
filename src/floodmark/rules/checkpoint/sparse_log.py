"""Finds logs with gaps, as async progress tracking leaves them."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM135",
    "sparse-log",
    Severity.ADVICE,
    finds="Both logs with the same holes, as async progress tracking leaves them.",
    matters="With asyncProgressTrackingEnabled most batches are not written down.",
    restart="With the option the query goes on, and runs everything since the last entry again. "
    "Without it the start fails: 'batch N doesn't exist'.",
    instead="Keep the option on. To turn it off, first run two batches with "
    "asyncProgressTrackingCheckpointIntervalMs=0.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    latest = checkpoint.latest_batch
    if evidence.sparse_by_design and latest and latest - 1 not in checkpoint.offset_ids:
        yield RULE.finding(
            f"{OFFSETS}/{latest}",
            f"The logs have {len(checkpoint.offset_ids)} of batches {checkpoint.offset_ids[0]} "
            f"to {latest}, but not the batch before the newest one.",
        )
