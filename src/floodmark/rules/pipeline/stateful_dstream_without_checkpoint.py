"""Finds stateful DStreams without a checkpoint folder."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM216",
    "stateful-dstream-without-checkpoint",
    Severity.ERROR,
    finds="updateStateByKey, mapWithState or a window with an inverse function, in a file that "
    "sets no checkpoint folder.",
    matters="State refers to the batch before it; without saving, its lineage grows forever.",
    restart="Spark refuses to start: the checkpoint directory has not been set.",
    instead="ssc.checkpoint(folder), inside the function given to getOrCreate.",
)


def check(code: Code) -> Iterator[Finding]:
    if code.dstreams.directories or code.dstreams.recoveries:
        return
    for method, line in code.dstreams.stateful:
        yield RULE.finding(
            code.path, f"{method}() keeps state, and no checkpoint folder is set.", line=line
        )
