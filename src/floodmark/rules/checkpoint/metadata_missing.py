"""Finds a checkpoint without its `metadata` file."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import METADATA
from floodmark.checkpoint.model import Kind
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM102",
    "metadata-missing",
    Severity.ERROR,
    finds="A checkpoint that has batches and no `metadata` file.",
    matters="The file holds the query's id. Exactly-once sinks such as Delta recognise a batch by "
    "that id and its number: with another id they store a batch twice.",
    restart="Spark 4.2 and later refuse to start (STREAMING_CHECKPOINT_MISSING_METADATA_FILE); "
    "earlier versions create a new id without a warning.",
    instead="Restore `metadata` from a backup. For a Delta sink the old id stands in the table's "
    "log, as the appId of its txn actions (`repair --sink TABLE` takes it from there).",
    repairable=True,
    mends=(Mend.IDENTITY,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    if checkpoint.kind is Kind.DSTREAMS or METADATA in evidence.sizes:
        return
    if checkpoint.offset_ids or checkpoint.commit_ids:
        yield RULE.finding(METADATA, "The metadata file is missing, but there are batches.")
