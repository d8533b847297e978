"""Finds a sink that has batches which the checkpoint has not planned."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM150",
    "sink-ahead-of-commits",
    Severity.ERROR,
    finds="With --sink: a Delta or Iceberg table or a file sink's `_spark_metadata` that has "
    "batches beyond the newest offset entry.",
    matters="The checkpoint was taken back or restored, or it is a new one on an old output: the "
    "sink remembers numbers that this checkpoint is yet to use.",
    restart="The sink takes those batches for done and skips them, silently, until the numbers "
    "pass its newest: their records are lost.",
    instead="Restore the newer checkpoint. Or go on under a new query id (`floodmark upgrade "
    "--new-identity`; a file sink needs a new output folder).",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    sink = evidence.outside.sink if evidence.outside else None
    if sink is None or sink.newest is None:
        return
    latest = evidence.checkpoint.latest_batch
    planned = -1 if latest is None else latest
    if sink.newest > planned:
        has = "none is planned" if latest is None else f"the newest planned is {latest}"
        yield RULE.finding(
            f"{OFFSETS}/{planned + 1}",
            f"{sink.place} has batch {sink.newest}, and {has}: it skips "
            f"{sink.newest - planned:,} batches to come.",
        )
