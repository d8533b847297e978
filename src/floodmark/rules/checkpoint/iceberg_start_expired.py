"""Finds an Iceberg stream whose first snapshot is expired, which availableNow needs."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.iceberg.offset import BEFORE_FIRST, KIND
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend
from floodmark.rules.start_inputs.snapshot import shortfalls

RULE = Rule(
    "FM159",
    "iceberg-start-expired",
    Severity.WARNING,
    finds="With --sources: an Iceberg stream that began in a snapshot which has expired since, "
    "while the snapshot in which it stands still exists.",
    matters="With the trigger availableNow Iceberg counts from the snapshot in "
    "sources/<id>/offsets/0, however far the stream has come.",
    restart="With availableNow the query fails (Cannot load current offset at snapshot …, the "
    "snapshot was expired or removed), though everything that it reads next exists. With "
    "other triggers it goes on.",
    instead="Write the snapshot in which the stream stands into that file, with position -1. "
    "`floodmark upgrade` does so in the new checkpoint.",
    mends=(Mend.SOURCE_SNAPSHOT,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.outside is None:
        return
    stuck = {source for _, source, _ in shortfalls(evidence)}
    for source, table in evidence.outside.lines.items():
        gone = table.began not in (None, BEFORE_FIRST) and table.began not in table.kept
        if gone and source not in stuck:
            path = f"{SOURCES}/{source}/{KIND.start_file}"
            yield RULE.finding(
                path,
                f"Source {source} began in snapshot {table.began}, which {table.place} no longer "
                "has. A start with availableNow fails.",
                repairable=evidence.begins_after is not None,
            )
