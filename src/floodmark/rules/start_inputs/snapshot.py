"""Finds what the Iceberg tables of a checkpoint lack of what it reads next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.live_answers import Shortfall
from floodmark.connectors.iceberg.offset import parse_iceberg_offset
from floodmark.connectors.iceberg.reach import IcebergTrouble, shortfall
from floodmark.rules.finding import Finding, Rule


def shortfalls(evidence: Evidence) -> Iterator[tuple[str, str, Shortfall[IcebergTrouble]]]:
    """Yield (log entry after which the stream goes on, source, what is gone)."""
    asked = evidence.answered(lambda outside: outside.lines, parse_iceberg_offset)
    for entry, source, (snapshot, *_), table in asked:
        found = shortfall(snapshot, table)
        if found is not None:
            yield entry, source, found


def by_trouble(rule: Rule, trouble: IcebergTrouble) -> Callable[[Evidence], Iterator[Finding]]:
    """Return the check of a rule that reports this trouble of a table."""

    def check(evidence: Evidence) -> Iterator[Finding]:
        for entry, source, found in shortfalls(evidence):
            if found.trouble is trouble:
                yield rule.finding(entry, f"Source {source}: {found.words}.")

    return check
