"""Finds a saved RDD with a part missing."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM145",
    "dstreams-incomplete-rdd",
    Severity.ERROR,
    finds="A saved RDD whose part files are not numbered from 0 without a hole, or that has fewer "
    "than its `_partitioner` says.",
    matters="The parts are the state of updateStateByKey and its like.",
    restart="The application fails when it recovers the RDD ('Invalid checkpoint file'). Where "
    "only the last parts are gone, Spark does not notice, and their keys are lost.",
    instead="Restore the part from a backup; else the state starts over.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.checkpoint.dstreams
    for rdd in found.rdds if found is not None else ():
        if rdd.missing is not None:
            yield RULE.finding(
                f"{rdd.path}/part-{rdd.missing:05d}",
                f"{rdd.path} has {rdd.partitions} parts, and part {rdd.missing} is missing.",
            )
