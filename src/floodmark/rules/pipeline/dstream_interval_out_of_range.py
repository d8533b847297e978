"""Finds a DStream interval that is too short or too long."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM213",
    "dstream-interval-out-of-range",
    Severity.ADVICE,
    finds="DStream.checkpoint(interval) outside 5 to 10 batches.",
    matters="Too often costs throughput; too seldom lets the lineage and the tasks grow.",
    restart="After a long interval, everything since the last save is computed again.",
    instead="5 to 10 times the batch interval.",
)
_LEAST, _MOST = 5, 10


def check(code: Code) -> Iterator[Finding]:
    batch = code.dstreams.batch_seconds
    for seconds, line in code.dstreams.intervals if batch else ():
        times = seconds / (batch or 1)
        whole = abs(times - round(times)) <= 1e-9
        if whole and times > 1 and not _LEAST <= times <= _MOST:
            yield RULE.finding(
                code.path,
                f"checkpoint({seconds:g}) is {times:g} batches of {batch:g} s.",
                line=line,
            )
