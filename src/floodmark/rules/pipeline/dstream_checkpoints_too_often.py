"""Finds a DStream that is saved with every batch."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM211",
    "dstream-checkpoints-too-often",
    Severity.WARNING,
    finds="DStream.checkpoint(interval) with an interval no longer than a batch.",
    matters="The whole state is written each time; where that takes longer than a batch, delay "
    "grows without end. A shorter interval is refused.",
    restart="The start gains nothing: the metadata is saved with every batch anyway.",
    instead="5 to 10 times the batch interval.",
)


def check(code: Code) -> Iterator[Finding]:
    batch = code.dstreams.batch_seconds
    for seconds, line in code.dstreams.intervals if batch else ():
        if seconds <= (batch or 0):
            yield RULE.finding(
                code.path,
                f"checkpoint({seconds:g}) saves the state with every batch of {batch:g} s.",
                line=line,
            )
