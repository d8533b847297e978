"""A query that goes on over lost records."""

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
    "or a topic that was made anew, are skipped.",
    restart="The query goes on at what is left, and nobody is told what was lost.",
    instead="Leave it at true; when it fails, `floodmark doctor --sources` says what is "
    "missing, and the choice is yours.",
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
