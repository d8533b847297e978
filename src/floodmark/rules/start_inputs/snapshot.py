"""Finds what the Iceberg tables of a checkpoint lack of what it reads next."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.connectors.iceberg.offset import parse_iceberg_offset
from floodmark.connectors.iceberg.reach import IcebergShortfall, shortfall
from floodmark.errors import MalformedFile


def shortfalls(evidence: Evidence) -> Iterator[tuple[str, str, IcebergShortfall]]:
    """Yield (log entry after which the stream goes on, source, what is gone)."""
    for entry, source, outside in evidence.asked_sources:
        table = outside.lines.get(source.id)
        if table is None or source.offset is None:
            continue
        try:
            found = shortfall(parse_iceberg_offset(source.offset)[0], table)
        except MalformedFile:
            continue
        if found is not None:
            yield entry, source.id, found
