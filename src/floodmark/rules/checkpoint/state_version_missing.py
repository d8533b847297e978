"""Finds missing state that the next batch loads."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM116",
    "state-version-missing",
    Severity.ERROR,
    finds="A partition's store without the state version that the next batch starts from.",
    matters="Batch N starts from state version N, in every partition and store, empty ones too.",
    restart="The first batch fails: CANNOT_LOAD_STATE_STORE, with "
    "CANNOT_READ_DELTA_FILE_NOT_EXISTS or CANNOT_READ_STREAMING_STATE_FILE below it.",
    instead="Restore the file from a backup.",
    mends=(Mend.STATE, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    version = evidence.next_batch or 0
    far_off = {count.operator: count for count in evidence.state.far_off(version)}
    for operator, count in far_off.items():
        yield RULE.finding(
            f"{STATE}/{operator}",
            f"{count.words}. Batch {version} starts from state version {version} in each "
            "partition.",
            repairable=evidence.state_is_to_be_had,
        )
    for need in evidence.needs:
        told = far_off.get(need.operator)
        if not need.lacks_version or (told and need.partition >= told.there):
            continue
        name = need.missing[-1]
        yield RULE.finding(
            f"{need.folder}/{name}",
            f"Batch {need.version} starts from state version {need.version}, but {need.folder} "
            f"has no {name}.",
            repairable=evidence.state_is_to_be_had,
        )
