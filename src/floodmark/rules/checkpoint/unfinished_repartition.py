"""Finds a repartition that Spark's own tool has not finished."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM134",
    "unfinished-repartition",
    Severity.ERROR,
    finds="A newest batch without a commit whose partition count differs from the batch before.",
    matters="Spark's offline repartition writes the batch's offset entry first. It stops there "
    "for HDFS-backed state, which it does not support.",
    restart="Spark 4.2 and later refuse to start (STREAMING_UNFINISHED_REPARTITION_DETECTED); "
    "earlier ones look for state in partitions that do not exist.",
    instead="Remove the batch's offset entry and its .crc: the batch read nothing. Then use "
    "`floodmark repartition`, which also supports HDFS-backed state.",
    repairable=True,
    mends=(Mend.REPARTITION,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    latest = checkpoint.in_flight_batch
    if latest is None or checkpoint.committed_batch is None:
        return
    counts = []
    for batch in (latest - 1, latest):
        entry = checkpoint.offsets.get(batch)
        if entry is None or entry.metadata is None:
            return
        counts.append(entry.metadata.conf.get(SHUFFLE_PARTITIONS))
    if None not in counts and counts[0] != counts[1]:
        yield RULE.finding(
            f"{OFFSETS}/{latest}",
            f"Batch {latest} changes the partitions from {counts[0]} to {counts[1]}, but has no "
            "commit.",
        )
