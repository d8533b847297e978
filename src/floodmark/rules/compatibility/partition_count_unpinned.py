"""Finds a number of partitions that the checkpoint does not pin."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM341",
    "partition-count-unpinned",
    Severity.ERROR,
    finds="State under an offset log of version 2 that lacks "
    "spark.sql.shuffle.partitions, and a session with another number than the "
    "state.",
    matters="Spark 4.2 leaves the number out during the first run of a query with such a log.",
    restart="With a larger number the query fails on state files that do not exist. With a "
    "smaller number Spark ignores the state of the higher partitions, without a warning.",
    instead="Set spark.sql.shuffle.partitions to the state's number, or let `migrate "
    "--partitions` or `floodmark repartition` make a checkpoint with another.",
)


_DEFAULT = "200"


def check(comparison: Comparison) -> Iterator[Reason]:
    checkpoint = comparison.checkpoint
    if not comparison.named_sources() or SHUFFLE_PARTITIONS in checkpoint.conf:
        return
    chosen = comparison.new.conf.get(SHUFFLE_PARTITIONS, _DEFAULT)
    has = max((one.partitions for one in checkpoint.state_operators), default=0)
    if has and chosen.isdecimal() and int(chosen) != has:
        fewer = int(chosen) < has
        fate = "would be ignored" if fewer else "are missing"
        yield reason(
            RULE,
            Verdict.NEEDS_MIGRATION,
            f"The session says {chosen} shuffle partitions and the state has {has}: partitions "
            f"{min(int(chosen), has)} to {max(int(chosen), has) - 1} {fate}.",
            f"{OFFSETS}/{checkpoint.latest_batch}",
            silent=fewer,
            migrate=(f"--partitions {chosen}",),
        )
