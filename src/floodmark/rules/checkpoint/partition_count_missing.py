"""Finds a stateful v2 offset log that does not say how many partitions there are."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM138",
    "partition-count-missing",
    Severity.WARNING,
    finds="State, and a newest offset entry of version 2 without spark.sql.shuffle.partitions.",
    matters="Spark 4.2 leaves the setting out of version 2 entries during a query's first run, so "
    "the state's number of partitions is not pinned.",
    restart="With a larger session value the start fails. With a smaller value Spark silently "
    "ignores the state of the higher partitions. With a batch in flight the start fails "
    "with 'None.get'.",
    instead="Set spark.sql.shuffle.partitions to the state's number before the start, and with a "
    "batch in flight also spark.sql.streaming.checkUnfinishedRepartitionOnRestart=false.",
    repairable=True,
    mends=(Mend.PARTITION_COUNT,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    entry = checkpoint.latest_entry
    if entry is None or entry.version != 2 or not checkpoint.state_operators:
        return
    if SHUFFLE_PARTITIONS not in checkpoint.conf:
        partitions = max(operator.partitions for operator in checkpoint.state_operators)
        in_flight = bool(checkpoint.in_flight_batch)
        yield RULE.finding(
            f"{OFFSETS}/{checkpoint.latest_batch}",
            f"offsets/{checkpoint.latest_batch} does not say how many partitions the state has; "
            f"it has {partitions}.",
            severity=Severity.ERROR if in_flight else Severity.WARNING,
        )
