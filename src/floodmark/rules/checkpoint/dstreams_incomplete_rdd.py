"""Finds a saved RDD with a part that is missing or damaged."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM145",
    "dstreams-incomplete-rdd",
    Severity.ERROR,
    finds="A saved RDD whose part files are not numbered from 0 without a gap, or that has fewer "
    "parts than its `_partitioner` says. With --read-data also a part that the next start "
    "reads, and that is cut short, does not decode, or does not match the checksums in its "
    "side file.",
    matters="The parts are the state of updateStateByKey and its like.",
    restart="The application fails when it recovers the RDD ('Invalid checkpoint file'). If only "
    "the last parts are gone, Spark does not notice, and their keys are lost.",
    instead="Restore the part from a backup. Otherwise the state starts over.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.checkpoint.dstreams
    for rdd in found.rdds if found is not None else ():
        if rdd.missing is not None:
            yield RULE.finding(
                f"{rdd.path}/part-{rdd.missing:05d}",
                f"{rdd.path} has {rdd.partitions} parts, and part {rdd.missing} is missing.",
            )
        for at in range(rdd.partitions):
            part = f"{rdd.path}/part-{at:05d}"
            fault = evidence.faults.get(part)
            reason = fault.reason.rstrip(".") if fault else None
            if reason is None and part in evidence.altered:
                reason = "its bytes do not match the checksums in its side file"
            if reason is not None:
                yield RULE.finding(part, f"{part} is damaged: {reason}.")
