"""Finds a number of partitions that has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM340",
    "shuffle-partitions-pinned",
    Severity.ADVICE,
    finds="spark.sql.shuffle.partitions set to another number than the state has partitions.",
    matters="A key lies in the partition that its hash gives for the number of partitions "
    "at the first start.",
    restart="Spark goes on with the checkpoint's number and ignores the new one.",
    instead="Nothing, if the old number may stay. `floodmark repartition` makes a checkpoint with "
    "another, and so does `migrate --partitions` for changed code.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    values = comparison.pinned_and_chosen(SHUFFLE_PARTITIONS)
    if values is not None:
        pinned, chosen = values
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"The session says {chosen} shuffle partitions; the state has {pinned}.",
            f"{OFFSETS}/{comparison.checkpoint.latest_batch}",
            do=f"{RULE.instead} `run` needs --allow pinned-conf.",
            silent=True,
            migrate=(f"--partitions {chosen}",) if chosen.isdecimal() else None,
        )
