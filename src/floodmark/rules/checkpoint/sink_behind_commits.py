"""Finds a sink without the batches that were committed to it."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM151",
    "sink-behind-commits",
    Severity.WARNING,
    finds="With --sink: a Delta or Iceberg table or a file sink's `_spark_metadata` whose newest "
    "batch of this query is older than the newest commit.",
    matters="Spark commits a batch when the sink has it: the output was restored from an earlier "
    "copy, or this is another output.",
    restart="Spark goes on after the newest commit: what the sink lost stays lost.",
    instead="Restore the output, or take the stream back to the sink's newest batch with "
    "`floodmark rewind`.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    sink = evidence.outside.sink if evidence.outside else None
    committed = evidence.checkpoint.committed_batch
    if sink is None or sink.newest is None or committed is None:
        return
    if sink.newest < committed:
        yield RULE.finding(
            f"{COMMITS}/{committed}",
            f"Batch {committed} is committed, but the newest batch of this query in {sink.place} "
            f"is {sink.newest}.",
        )
