"""Finds a Delta table that no longer holds what the next batch reads."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.connectors.delta.offset import parse_delta_offset
from floodmark.connectors.delta.reach import DeltaTrouble, shortfall
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.table import by_trouble

RULE = Rule(
    "FM147",
    "delta-version-gone",
    Severity.ERROR,
    finds="With --sources: a version that the table's log no longer has or does not have yet, "
    "data files that were vacuumed, or another table at that place.",
    matters="The log's retention, VACUUM, a restore or a table recreated overtook the stream.",
    restart="The query fails at its first batch (DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE, "
    "a missing version or a missing file); with failOnDataLoss=false it skips what is gone.",
    instead="Point the source at the table that the checkpoint knows, restore its files, or read "
    "the table again with a new checkpoint.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    asked = evidence.answered(lambda outside: outside.tables, parse_delta_offset)
    for entry, source, offset, table in asked:
        found = shortfall(offset, table)
        if found is not None:
            yield RULE.finding(entry, f"Source {source}: {found.words}.")


check_start = by_trouble(
    RULE,
    DeltaTrouble.VERSION_GONE,
    why="The log's retention (delta.logRetentionDuration) removed versions that the "
    "stream had not read. Spark fails, or skips them where failOnDataLoss is false.",
    do="Begin with a new checkpoint that reads the table again, or, to go on with what "
    'is left, set .option("failOnDataLoss", "false") as well.',
)
