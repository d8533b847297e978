"""Finds an Iceberg sink that remembers no batch of the query."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS
from floodmark.connectors.sinks import forgets
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM160",
    "iceberg-sink-forgot",
    Severity.WARNING,
    finds="With --sink: an Iceberg table in whose snapshots no batch of this query is recorded, "
    "while batches are committed.",
    matters="An Iceberg sink knows the batches that it has by its snapshots alone "
    "(spark.sql.streaming.queryId and epochId). Snapshots that are expired are forgotten, if "
    "others came after them; or this is another table.",
    restart="A batch that runs again, after a crash or a rewind that keeps the id, is written a "
    "second time.",
    instead="Keep the snapshots of the last batches (expire_snapshots with retain_last or a later "
    "older_than), and look whether this is the table that the query writes. Before a batch runs "
    "again, look in the table whether its rows are there.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    sink = evidence.outside.sink if evidence.outside else None
    committed = evidence.checkpoint.committed_batch
    if sink is None or not forgets(sink.kind) or sink.newest is not None or committed is None:
        return
    flight = evidence.checkpoint.in_flight_batch
    again = "" if flight is None else f" Batch {flight}, in flight, may come twice."
    yield RULE.finding(
        f"{COMMITS}/{committed}",
        f"{sink.place} has no snapshot of query {evidence.checkpoint.query_id}, and batch "
        f"{committed} is committed.{again}",
    )
