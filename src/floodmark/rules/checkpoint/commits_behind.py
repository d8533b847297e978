"""Finds more than one batch without a commit."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM109",
    "commits-behind",
    Severity.ERROR,
    finds="A newest commit that is two or more batches behind the newest offset entry.",
    matters="Spark plans a batch only when the one before it is committed: commits were lost, or "
    "two queries write here.",
    restart="Only the newest planned batch is run again. The others are neither run nor "
    "committed: what they had not written is lost.",
    instead="Write the lost commits again: Spark plans a batch only when the batch before it is "
    "done, so these batches are done.",
    repairable=True,
    mends=(Mend.OLDER_COMMITS, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    if latest is None or committed is None or committed >= latest - 1:
        return
    open_batches = [batch for batch in checkpoint.offset_ids if batch > committed]
    if len(open_batches) > 1:
        yield RULE.finding(
            f"{COMMITS}/{open_batches[0]}",
            f"{len(open_batches)} batches ({open_batches[0]} to {open_batches[-1]}) are planned "
            f"and not committed; the newest commit is commits/{committed}.",
        )
