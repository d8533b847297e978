"""Finds commits of batches that were never planned."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM108",
    "commits-ahead",
    Severity.ERROR,
    finds="A newest commit that is newer than the newest offset entry.",
    matters="Offset entries are written first, so the newest ones were removed, or a copy took "
    "offsets/ before commits/.",
    restart="Spark does not see it: it runs the newest planned batch again, writes its output a "
    "second time, and then fails because the commit is already there "
    "(CONCURRENT_STREAM_LOG_UPDATE).",
    instead="Restore the offset entries. If they are lost, remove the commits beyond the newest "
    "offset, with their .crc files: those batches' records are read again.",
    repairable=True,
    mends=(Mend.GO_BACK,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    if latest is not None and committed is not None and committed > latest:
        ahead = [batch for batch in checkpoint.commit_ids if batch > latest]
        names = f"{COMMITS}/{ahead[0]}" + (f" to {ahead[-1]}" if len(ahead) > 1 else "")
        verb = "are" if len(ahead) > 1 else "is"
        yield RULE.finding(
            f"{COMMITS}/{ahead[0]}",
            f"{names} {verb} newer than the newest offset entry, offsets/{latest}.",
            repairable=evidence.way_back is not None,
        )
