"""Finds streams set up on a recovered context."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM215",
    "setup-after-recovery",
    Severity.ERROR,
    finds="Streams or a checkpoint folder set up on what StreamingContext.getOrCreate returned.",
    matters="The recovered context has its graph already; the code adds to it at each start.",
    restart="The first run works. After a crash Spark fails: new inputs cannot be added to a "
    "recovered context.",
    instead="Do all of it inside the creating function; after getOrCreate only start() and "
    "awaitTermination().",
)


def check(code: Code) -> Iterator[Finding]:
    for recovery in code.dstreams.recoveries:
        for method, line in recovery.setup:
            yield RULE.finding(
                code.path, f"{method}() is called on the context after getOrCreate.", line=line
            )
