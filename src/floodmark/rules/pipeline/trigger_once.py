"""Finds the deprecated trigger that reads everything in one batch."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM227",
    "trigger-once",
    Severity.ADVICE,
    finds="trigger(once=True).",
    matters="Spark has deprecated it since version 3.4. It reads everything that is new in one "
    "batch and ignores maxFilesPerTrigger, maxOffsetsPerTrigger and maxBytesPerTrigger.",
    restart="After a long pause the one batch may be too large to finish.",
    instead=".trigger(availableNow=True): it reads the same data in batches of the size you set, "
    "then stops. The checkpoint stays valid.",
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        if stream.trigger_once is not None:
            yield RULE.finding(
                code.path,
                "trigger(once=True) is deprecated and reads everything in one batch.",
                line=stream.trigger_once,
            )
