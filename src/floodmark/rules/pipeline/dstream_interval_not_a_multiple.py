"""Finds a DStream interval between two batches."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM212",
    "dstream-interval-not-a-multiple",
    Severity.ERROR,
    finds="DStream.checkpoint(interval) with an interval that is not a multiple of the batch's.",
    matters="A DStream is saved at the end of a batch: an interval between two has no meaning.",
    restart="Spark refuses to start the context.",
    instead="A multiple of the batch interval, 5 to 10 times it.",
)


def check(code: Code) -> Iterator[Finding]:
    batch = code.dstreams.batch_seconds
    for seconds, line in code.dstreams.intervals if batch else ():
        times = seconds / (batch or 1)
        if times > 1 and abs(times - round(times)) > 1e-9:
            yield RULE.finding(
                code.path,
                f"checkpoint({seconds:g}) is not a multiple of the batch interval, {batch:g} s.",
                line=line,
            )
