"""Finds a file with a source's start position that does not parse."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.connectors.registry import about
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM130",
    "source-start-unreadable",
    Severity.ERROR,
    finds="A Kafka or rate source's sources/<id>/0 that is empty, cut short or garbled.",
    matters="It says where batch 0 began; a rate source counts its seconds from it.",
    restart="A rate source reads it at every start and fails. Kafka reads it only while no batch "
    "is planned; its older reader always.",
    instead="Restore it from a backup. For Kafka with planned batches, the file can be removed; "
    "a rate source's can be derived from its batches, to the second.",
    mends=(Mend.SOURCE_START,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    begun = {one.id for one in evidence.checkpoint.sources if about(one).begins_once}
    for path, fault in evidence.faults.items():
        parts = path.split("/")
        if parts[0] == "sources" and parts[1] not in evidence.seen_files and not fault.newer:
            known = parts[1] in begun or parts[1] in evidence.rate_starts
            yield RULE.finding(path, f"{path} cannot be read: {fault.reason}.", repairable=known)
