"""Finds an Iceberg sink that remembers no batch of the query."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS
from floodmark.connectors.sink_memory import forgets
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM160",
    "iceberg-sink-forgot",
    Severity.WARNING,
    finds="With --sink: an Iceberg table in whose snapshots no batch of this query is recorded, "
    "while batches are committed.",
    matters="An Iceberg sink knows its batches only by its snapshots "
    "(spark.sql.streaming.queryId and epochId). It forgets expired snapshots if later ones "
    "exist. Or this is another table.",
    restart="If a batch runs again, after a crash or a rewind that keeps the id, the sink writes "
    "it a second time.",
    instead="Keep the snapshots of the last batches (expire_snapshots with retain_last or a "
    "later older_than), and check that this is the table that the query writes. Before a "
    "batch runs again, check whether the table has its rows.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    sink = evidence.outside.sink if evidence.outside else None
    committed = evidence.checkpoint.committed_batch
    if sink is None or not forgets(sink.kind) or sink.newest is not None or committed is None:
        return
    flight = evidence.checkpoint.in_flight_batch
    again = "" if flight is None else f"  The in-flight batch {flight} may be written twice."
    yield RULE.finding(
        f"{COMMITS}/{committed}",
        f"{sink.place} has no snapshot of query {evidence.checkpoint.query_id}, but batch "
        f"{committed} is committed.{again}",
    )
