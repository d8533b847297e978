"""Finds a checkpoint without any commit."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.derived_entries import derived_commit
from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM111",
    "commits-missing",
    Severity.ERROR,
    finds="Several planned batches and not one commit, by a Spark that writes commits.",
    matters="The folder commits/ was lost. Which batches finished is no longer known.",
    restart="Spark runs the newest planned batch again and counts all earlier ones as done.",
    instead="Restore commits/ from a backup. If the sink has every batch but the newest, the "
    "start does no harm.",
    mends=(Mend.NEWEST_COMMIT,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    if checkpoint.commit_ids or len(checkpoint.offset_ids) < 2:
        return
    # Spark 2.1 wrote no commits, and no conf into its offset entries either.
    if any(entry.metadata and entry.metadata.conf for entry in checkpoint.offsets.values()):
        yield RULE.finding(
            "commits",
            f"{len(checkpoint.offset_ids)} batches are planned, but commits/ has no commit.",
            repairable=derived_commit(checkpoint, checkpoint.offset_ids[-2]) is not None,
        )
