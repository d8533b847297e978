"""Finds starting offsets that a checkpoint overrules."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM221",
    "starting-offsets-ignored",
    Severity.ADVICE,
    finds="Exact startingOffsets, startingTimestamp or startingVersion in a query with a "
    "checkpoint.",
    matters="They apply only to a checkpoint's first batch.",
    restart="Once the checkpoint has a batch, Spark continues from there and ignores them.",
    instead="Remove them after the first start, or use `floodmark upgrade` to start a new "
    "checkpoint at exact offsets.",
)
_EXACT = ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp", "startingVersion")


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        if stream.checkpoint is None:
            continue
        for read in stream.reads:
            for key in _EXACT:
                option = read.option(key)
                literal = option.value.literal if option else None
                if option and literal and literal.lower() not in ("earliest", "latest"):
                    yield RULE.finding(
                        code.path,
                        f"{key} counts for the first batch of a new checkpoint only.",
                        line=option.line,
                    )
