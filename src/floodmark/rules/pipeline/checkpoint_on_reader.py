"""Finds checkpointLocation on a reader, which ignores it."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import CHECKPOINT_LOCATION
from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM225",
    "checkpoint-on-reader",
    Severity.ERROR,
    finds="checkpointLocation as an option of readStream.",
    matters="Sources ignore the option: it belongs to the query, which writeStream makes.",
    restart="The query has no checkpoint, or a different one than you think.",
    instead='.writeStream.option("checkpointLocation", path)',
)


def check(code: Code) -> Iterator[Finding]:
    for read in code.reads:
        option = read.option(CHECKPOINT_LOCATION)
        if option is not None:
            yield RULE.finding(
                code.path,
                "checkpointLocation is given to readStream, which ignores it.",
                line=option.line,
            )
