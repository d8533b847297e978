"""Finds a foreachBatch that writes the same batch twice."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM208",
    "batch-id-unused",
    Severity.WARNING,
    finds="A foreachBatch function that appends and never uses its batch id.",
    matters="foreachBatch is at-least-once: after a crash between the write and the commit, Spark "
    "calls it again with the same batch id and the same rows.",
    restart="The batch in flight is written a second time.",
    instead='For Delta: .option("txnVersion", batch_id).option("txnAppId", …). Else keep the '
    "batch id with the rows and skip one that is there, or merge by key.",
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        function = stream.batch_function
        if function and function.writes and not function.uses_batch_id:
            yield RULE.finding(
                code.path,
                f"This foreachBatch function writes ({function.writes}) and does not use the "
                "batch id.",
                line=function.line,
            )
