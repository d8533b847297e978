"""Finds a creating function that uses objects from outside it."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM214",
    "outside-closure",
    Severity.WARNING,
    finds="A function given to StreamingContext.getOrCreate that uses a context or a stream made "
    "outside it.",
    matters="The function runs only when there is no checkpoint. After a recovery, what was made "
    "outside is another context than the recovered one.",
    restart="Two contexts in one process: the start fails, or parts of the graph are missing.",
    instead="Make the contexts and every stream inside the function.",
)


def check(code: Code) -> Iterator[Finding]:
    for recovery in code.dstreams.recoveries:
        for name, line in recovery.outside:
            yield RULE.finding(
                code.path,
                f"The creating function uses {name}, which was made outside it.",
                line=line,
            )
