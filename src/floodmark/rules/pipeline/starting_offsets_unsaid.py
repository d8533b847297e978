"""Finds a Kafka source that begins at the end of its topic."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM222",
    "starting-offsets-unsaid",
    Severity.ADVICE,
    finds="A Kafka source without startingOffsets.",
    matters="The default for a stream is 'latest': with a new checkpoint, Spark skips everything "
    "that is already in the topic.",
    restart="Nothing changes while the checkpoint exists. If it is lost, the records since then "
    "are skipped.",
    instead='Set it: .option("startingOffsets", "earliest"), or "latest" if you intend that.',
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
