"""Finds leftovers in a checkpoint that has no batch yet."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS, OFFSETS, STATE
from floodmark.checkpoint.model import Kind
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM113",
    "leftovers-block-first-start",
    Severity.ERROR,
    finds="No batch in the logs, and yet files in offsets/, commits/ or state/: a temporary file "
    "of the very first write, or the state of an earlier query.",
    matters="A query without batches is new to Spark, and Spark expects its folders to be empty.",
    restart="Spark 4.1 and later refuse to start (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY), "
    "temporary files included. Earlier ones start, and may mix old state into the new.",
    instead="Remove what is in offsets/, commits/ and state/; no batch was planned, so nothing is "
    "lost. `metadata` can stay.",
    repairable=True,
    mends=(Mend.FIRST_START,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    if checkpoint.kind is Kind.DSTREAMS or checkpoint.offset_ids or checkpoint.commit_ids:
        return
    left = [
        file.path
        for file in checkpoint.files
        if file.path.startswith((f"{OFFSETS}/", f"{COMMITS}/", f"{STATE}/"))
    ]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        yield RULE.finding(
            left[0], f"No batch is planned yet, and {left[0]}{more} is left from before."
        )
