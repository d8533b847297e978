"""Finds a gap in the files that rebuild a state version."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM117",
    "broken-state-chain",
    Severity.ERROR,
    finds="A delta, changelog or snapshot missing between the last snapshot and the state version "
    "that the next batch loads.",
    matters="A version is the last snapshot and every change after it, so one missing file "
    "breaks all later versions.",
    restart="The query goes on only as long as executors hold the state in memory; a start fails "
    "with CANNOT_LOAD_STATE_STORE.",
    instead="Restore the file from a backup.",
    mends=(Mend.STATE, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for need in evidence.needs:
        if need.lacks_version or not need.missing:
            continue
        first, last = need.missing[0], need.missing[-1]
        names = first if first == last else f"{first} to {last}"
        yield RULE.finding(
            f"{need.folder}/{last}",
            f"{need.folder}: version {need.version} cannot be rebuilt: {names} is missing.",
            repairable=evidence.state_is_to_be_had,
        )
