"""Finds state that lies in another partition than its keys belong to."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM152",
    "misplaced-state",
    Severity.ERROR,
    finds="With --read-data: a state file, or a RocksDB store, whose keys belong to another "
    "partition by Spark's hash.",
    matters="The file belongs to another partition: a copy or a manual change mixed them up.",
    restart="Spark loads it without a warning. Its keys are never found again, and the keys that "
    "belong there start without state.",
    instead="Restore the file from a backup.",
    mends=(Mend.STATE, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, how in evidence.strays.items():
        needed = path in evidence.needed
        is_file = path in evidence.sizes
        yield RULE.finding(
            path,
            f"{path} belongs to another partition: {how}.",
            severity=Severity.WARNING if is_file and not needed else Severity.ERROR,
            repairable=is_file and (not needed or evidence.state_is_to_be_had),
        )
