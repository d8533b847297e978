"""Finds a commit whose batch has no offset entry."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM101",
    "commit-without-offset",
    Severity.ERROR,
    finds="A file in commits/ whose batch has no file in offsets/, though older batches have one.",
    matters="The offset entry says which records the batch took. Without it nobody knows.",
    restart="Spark reads the two newest offset entries, and fails at a start if one of them is "
    "missing.",
    instead="Restore the offset entry from a backup, or go back to the batch before it with "
    "`floodmark rewind`.",
    repairable=True,
    mends=(Mend.OFFSET_ENTRY, Mend.GO_BACK),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    planned = checkpoint.offset_ids
    lowest, latest = (planned[0], planned[-1]) if planned else (-1, None)
    for batch in checkpoint.commit_ids:
        # Older than the oldest offset: retention removes offsets first.
        if batch in planned or batch < lowest or (latest is not None and batch > latest):
            continue
        blocks = latest is None or batch == latest - 1
        do = None
        if latest is None:
            # No batch is left to go back to.
            do = (
                "Restore the folder offsets/ from a backup: `floodmark repair CP --from-backup "
                "REPO`."
            )
            # The words are the same for every entry: a hundred of them are one problem.
            means = (
                "Without any offset entry Spark treats this as a first start: Spark 4.1 and "
                "later refuse a folder that is not empty, earlier versions begin again at batch "
                "0."
            )
        elif blocks:
            means = f"Spark does not start: it needs offsets/{batch}."
        else:
            means = "Spark starts; going back to this batch is not possible."
        yield RULE.finding(
            f"{COMMITS}/{batch}",
            f"commits/{batch} exists, but offsets/{batch} does not.",
            repairable=blocks and evidence.way_back is not None,
            severity=Severity.ERROR if blocks else Severity.WARNING,
            why=f"{RULE.matters} {means}",
            do=do,
        )
