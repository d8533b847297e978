"""A Kafka source that begins wherever the topic ends."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM222",
    "starting-offsets-unsaid",
    Severity.ADVICE,
    finds="A Kafka source without startingOffsets.",
    matters="The default for a stream is 'latest': with a new checkpoint, everything that is in "
    "the topic already is passed over.",
    restart="Nothing changes while the checkpoint is there; if it is ever lost, so are the "
    "records since.",
    instead='Say it: .option("startingOffsets", "earliest"), or "latest" if that is meant.',
)
_SAYS = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")


def check(code: Code) -> Iterator[Finding]:
    for read in code.reads:
        if (
            read.format == "kafka"
            and read.options_known
            and not any(read.option(key) for key in _SAYS)
        ):
            yield RULE.finding(
                code.path, "This Kafka source does not say where it begins.", line=read.line
            )
