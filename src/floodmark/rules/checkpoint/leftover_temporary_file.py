"""Finds temporary files of writes that never finished."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM112",
    "leftover-temporary-file",
    Severity.ADVICE,
    finds="Temporary files of log or state writes that were stopped, and that nobody writes any "
    "more.",
    matters="They only take space: a crash leaves some each time.",
    restart="Spark neither reads nor removes them.",
    instead="Remove them while the query is stopped.",
    repairable=True,
    mends=(Mend.LEFTOVERS,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    if not checkpoint.offset_ids:
        return  # before the first batch they do harm; another rule reports that
    left = evidence.leftovers
    if left:
        size = sum(file.size for file in left)
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        yield RULE.finding(
            left[0].path,
            f"{left[0].path}{more}: temporary files left over, {size:,} bytes in all.",
        )
