"""Finds a sink that has batches which the checkpoint has not planned."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.checkpoint.live_answers import SinkLog
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM150",
    "sink-ahead-of-commits",
    Severity.ERROR,
    finds="With --sink, and at each start of `floodmark run` (Delta, file sinks): a Delta or "
    "Iceberg table or a file sink's `_spark_metadata` that has batches beyond the newest offset "
    "entry.",
    matters="The checkpoint was rewound or restored, or another copy of it has run on (for "
    "example after an `upgrade`), or a new checkpoint writes to an old output. The sink "
    "remembers numbers that this checkpoint has not used yet.",
    restart="The sink silently skips those batches until the numbers pass its newest one. Their "
    "records are lost.",
    instead="Use the newer copy of the checkpoint. Or go on from this one under a new query id: "
    "`floodmark upgrade CP NEW --new-identity` (a file sink needs a new output folder). A "
    "Delta table then gets the newer records a second time, so delete them from it first.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.outside is not None:
        yield from _judge(evidence.checkpoint.latest_batch, evidence.outside.sink)


def check_start(situation: Situation) -> Iterator[Finding]:
    checkpoint = situation.checkpoint
    latest = None if checkpoint is None else checkpoint.latest_batch
    yield from _judge(latest, situation.outside.sink)


def _judge(latest: int | None, sink: SinkLog | None) -> Iterator[Finding]:
    if sink is None or sink.newest is None:
        return
    planned = -1 if latest is None else latest
    if sink.newest > planned:
        has = "none is planned" if latest is None else f"the newest planned is {latest}"
        yield RULE.finding(
            f"{OFFSETS}/{planned + 1}",
            f"{sink.place} has batch {sink.newest}, but {has}. The sink will skip batches "
            f"{planned + 1:,} to {sink.newest:,}.",
        )
