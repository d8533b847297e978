"""Finds logs that nobody cleans up."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM140",
    "unpurged-log",
    Severity.ADVICE,
    finds="More than 1,000 entries in offsets/ or commits/.",
    matters="Spark keeps 100 batches; here the setting is far higher, or its clean-up cannot "
    "delete (a role without the right to, a bucket with a lock).",
    restart="Nothing breaks; each start lists more.",
    instead="`floodmark compact CP` removes what is too old. Look at "
    "spark.sql.streaming.minBatchesToRetain and at the driver's log for failed purges.",
)
_KEPT = 1_000


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    for log, batches in (("offsets", checkpoint.offset_ids), ("commits", checkpoint.commit_ids)):
        if len(batches) > _KEPT:
            yield RULE.finding(
                log, f"{log}/ holds {len(batches):,} batches, {batches[0]} to {batches[-1]}."
            )
