"""Finds a saved RDD with a part missing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.model import Kind
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM145",
    "dstreams-incomplete-rdd",
    Severity.ERROR,
    finds="A saved RDD whose part files are not numbered from 0 without a hole.",
    matters="The parts are the state of updateStateByKey and its like.",
    restart="The application fails when it recovers the RDD ('Invalid checkpoint file').",
    instead="Restore the part from a backup; else the state starts over.",
)
_PART = re.compile(r"(?P<rdd>.+/rdd-\d+)/part-(?P<part>\d{5,9})")


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.checkpoint.kind is not Kind.DSTREAMS:
        return
    parts: dict[str, set[int]] = defaultdict(set)
    for file in evidence.checkpoint.files:
        found = _PART.fullmatch(file.path)
        if found:
            parts[found["rdd"]].add(int(found["part"]))
    for rdd, numbers in sorted(parts.items()):
        missing = next(part for part in range(len(numbers) + 1) if part not in numbers)
        if missing < len(numbers):
            yield RULE.finding(
                f"{rdd}/part-{missing:05d}",
                f"{rdd} has {len(numbers)} parts, and part {missing} is missing.",
            )
