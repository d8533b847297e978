"""Finds batches that were planned and never committed, although later ones were."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM110",
    "commit-gap",
    Severity.WARNING,
    finds="A batch with an offset entry and no commit, older than the newest commit.",
    matters="This is what is left after a start on commits that were behind: Spark went on "
    "without running the batch again. Its output may be missing.",
    restart="Spark does not look at such a batch.",
    instead="Compare the sink with the batch's offsets (`floodmark offsets CP --batch N`) and "
    "read those records again if the sink does not have them.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    committed = set(checkpoint.commit_ids)
    if not committed:
        return
    # Commits older than the oldest one were removed by retention.
    lowest, highest = min(committed), max(committed)
    for batch in checkpoint.offset_ids:
        if lowest < batch < highest and batch not in committed:
            yield RULE.finding(
                f"{COMMITS}/{batch}",
                f"Batch {batch} was planned and never committed; later ones were.",
                do=RULE.instead.replace("--batch N", f"--batch {batch}"),
            )
