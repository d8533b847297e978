"""Finds failOnDataLoss=false on a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM210",
    "data-loss-allowed",
    Severity.WARNING,
    finds="failOnDataLoss=false on a source.",
    matters="The option turns an error into a line in the log: records that Kafka has deleted, "
    "or a topic that was recreated, are skipped.",
    restart="The query continues with what is left, and no error says what was lost.",
    instead="Leave it at true. If the query fails, `floodmark doctor --sources` says what is "
    "missing; then decide.",
)


def check(code: Code) -> Iterator[Finding]:
    for read in code.reads:
        option = read.option("failOnDataLoss")
        if option and (option.value.literal or "").lower() == "false":
            yield RULE.finding(
                code.path,
                "failOnDataLoss is false: lost records are skipped.",
                line=option.line,
            )
