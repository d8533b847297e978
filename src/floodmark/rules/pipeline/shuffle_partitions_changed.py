"""A setting that an old checkpoint overrules."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM219",
    "shuffle-partitions-changed",
    Severity.ADVICE,
    finds="spark.sql.shuffle.partitions set in code that has a stateful query with a checkpoint.",
    matters="The number of partitions is pinned by the checkpoint at its first batch.",
    restart="Spark goes on with the checkpoint's number and ignores this one.",
    instead="Choose it before the first start. Later, `floodmark repartition` makes a checkpoint "
    "with another number.",
)


def check(code: Code) -> Iterator[Finding]:
    conf = code.conf("spark.sql.shuffle.partitions")
    stateful = any(stream.is_stateful and stream.checkpoint for stream in code.streams)
    if conf is not None and stateful:
        yield RULE.finding(
            code.path,
            f"spark.sql.shuffle.partitions = {conf.value.pattern.replace('{}', '…')} has no "
            "effect on a stateful query whose checkpoint has another number.",
            line=conf.line,
        )
