"""Finds a gap in the offset log."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM107",
    "offset-gap",
    Severity.ERROR,
    finds="A batch between the oldest and the newest that is in neither log.",
    matters="Batches have consecutive numbers: one was removed by hand or lost by a copy.",
    restart="Spark needs the entry before the newest one: 'batch N doesn't exist'. Spark does "
    "not notice an older gap.",
    instead="Restore the entry from a backup. If the newest batch is committed, the entry before "
    "it only has to exist. Otherwise go back to the last whole batch.",
    repairable=True,
    mends=(Mend.OFFSET_ENTRY, Mend.GO_BACK),
)
_TOLD = 20


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    planned, committed = set(checkpoint.offset_ids), set(checkpoint.commit_ids)
    if not planned or evidence.sparse_by_design:
        return
    latest = max(planned)
    for batch in evidence.holes[-_TOLD:]:
        if batch in committed:
            continue
        blocks = batch == latest - 1
        yield RULE.finding(
            f"{OFFSETS}/{batch}",
            f"Batch {batch} is missing from the logs, but later batches exist.",
            severity=Severity.ERROR if blocks else Severity.WARNING,
            why=None
            if blocks
            else f"{RULE.matters} Spark starts all the same: it opens the newest entries only.",
            repairable=blocks and evidence.way_back is not None,
        )
