"""Finds shuffle partitions that the code changes under a stateful query."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM219",
    "shuffle-partitions-changed",
    Severity.ADVICE,
    finds="spark.sql.shuffle.partitions set to two numbers in code that has a stateful query with "
    "a checkpoint.",
    matters="The checkpoint pins the number of partitions at its first batch.",
    restart="Spark goes on with the checkpoint's number and ignores this one.",
    instead="Choose it before the first start. Later, `floodmark repartition` makes a checkpoint "
    "with another number.",
)


def check(code: Code) -> Iterator[Finding]:
    if not any(stream.is_stateful and stream.checkpoint for stream in code.streams):
        return
    first: str | None = None
    for conf in sorted(code.confs, key=lambda conf: conf.line):
        number = conf.value.literal if conf.key == SHUFFLE_PARTITIONS else None
        if number is None:
            continue
        first = first or number
        if number != first:
            yield RULE.finding(
                code.path,
                f"{SHUFFLE_PARTITIONS} is {first} at first and {number} here: a stateful query "
                "keeps the number of its first batch.",
                line=conf.line,
            )
