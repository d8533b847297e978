"""Finds a Hudi stream whose offset Hudi 1.0 and later read as null."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.connectors.hudi.offset import is_old_form
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM161",
    "hudi-old-offset",
    Severity.ADVICE,
    finds="A Hudi source whose newest offset has the form of releases before 1.0: "
    '{"commitTime":…}.',
    matters="Hudi 1.0 looks for offsetCommitTime and ignores unknown fields, so it reads this "
    "offset as null.",
    restart="With the Hudi that wrote it, the query goes on. With Hudi 1.0 or later its position "
    "is lost.",
    instead="Before Hudi is upgraded, let the query read to its end. Then begin with a new "
    "checkpoint at that commit (hoodie.datasource.streaming.startOffset), which reads it again.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    newest = max(evidence.positions, default=None)
    for source in () if newest is None else evidence.positions[newest]:
        if is_old_form(source.offset):
            yield RULE.finding(
                f"{OFFSETS}/{newest}",
                f"Source {source.id} stands at commit {source.offset['commitTime']}, in the form "
                "of Hudi before 1.0.",
            )
