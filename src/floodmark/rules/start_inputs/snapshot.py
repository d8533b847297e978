"""Finds what the Iceberg tables of a checkpoint lack of what it reads next."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.connectors.iceberg.offset import parse_iceberg_offset
from floodmark.connectors.iceberg.reach import IcebergShortfall, shortfall


def shortfalls(evidence: Evidence) -> Iterator[tuple[str, str, IcebergShortfall]]:
    """Yield (log entry after which the stream goes on, source, what is gone)."""
    asked = evidence.answered(lambda outside: outside.lines, parse_iceberg_offset)
    for entry, source, (snapshot, *_), table in asked:
        found = shortfall(snapshot, table)
        if found is not None:
            yield entry, source, found
