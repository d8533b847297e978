"""Finds a `metadata` file that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import METADATA
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM103",
    "metadata-unreadable",
    Severity.ERROR,
    finds="A `metadata` file that is empty, cut short, or not JSON with an id.",
    matters="Exactly-once sinks recognise the query by this id.",
    restart="Every start fails while reading the file; Spark does not write it again.",
    instead="Restore `metadata` from a backup. If no batch was planned yet, remove the file: "
    "Spark then makes a new one.",
    repairable=True,
    mends=(Mend.IDENTITY,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    fault = evidence.faults.get(METADATA)
    if fault is not None:
        yield RULE.finding(METADATA, f"The metadata file cannot be read: {fault.reason}.")
