"""Parses an Iceberg table's metadata: its snapshots, and what each of them added. Pure.

Every change writes a new `metadata/<n>-<uuid>.metadata.json` (or `v<n>.metadata.json`) with all
snapshots that have not expired. A snapshot's summary counts what it added.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from floodmark.errors import MalformedFile

FOLDER = "metadata"
_NAME = re.compile(r"v?(\d{1,18})(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")
_LONGEST = 256 << 20
APPEND = "append"
QUERY_ID, EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
"""Iceberg's sink writes these keys into the summary of each batch's snapshot (SparkWrite).
`once.iceberg` writes them through an option of Spark, which turns names into lower case."""
_COUNTS = (
    *("added-data-files", "added-records", "added-files-size"),
    *("total-data-files", "total-records", "total-files-size"),
)
_NOT_METADATA = (
    *(ValueError, TypeError, ArithmeticError, LookupError, AttributeError),
    *(RecursionError, OSError, EOFError),
)
"""The errors that come from parsing a file with other content."""


@dataclass(frozen=True)
class TableSnapshot:
    id: int
    parent: int | None
    time_ms: int
    operation: str
    query_id: str | None
    epoch: int | None
    """`query_id` and `epoch`: the streaming query that wrote it, and the batch number."""
    added_files: int | None
    added_records: int | None
    added_bytes: int | None
    total_files: int | None
    total_records: int | None
    total_bytes: int | None


@dataclass(frozen=True)
class IcebergTable:
    current: TableSnapshot | None
    snapshots: Mapping[int, TableSnapshot]
    properties: Mapping[str, str]

    @cached_property
    def line(self) -> tuple[TableSnapshot, ...]:
        """The current snapshot, its parent and so on, as far as they have not expired."""
        found: dict[int, TableSnapshot] = {}
        at = self.current
        while at is not None and at.id not in found:
            found[at.id] = at
            at = None if at.parent is None else self.snapshots.get(at.parent)
        return tuple(found.values())

    @property
    def is_whole(self) -> bool:
        """Whether the line reaches back to a snapshot without a parent: none of it has expired."""
        return not self.line or self.line[-1].parent is None

    def since(self, snapshot: int | None) -> list[TableSnapshot] | None:
        """Return the line after a snapshot, oldest first; None if the snapshot is not in it."""
        ids = [one.id for one in self.line]
        if snapshot is None:
            return list(self.line[::-1])
        return list(self.line[: ids.index(snapshot)][::-1]) if snapshot in ids else None


def newest_names(names: Iterable[str]) -> list[str]:
    """Return the metadata files with the highest number; several after a failed commit."""
    numbered = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name))]
    newest = max((number for number, _ in numbered), default=-1)
    return sorted(name for number, name in numbered if number == newest)


def parse_table_metadata(name: str, data: bytes) -> tuple[int, IcebergTable]:
    """Return when the metadata was written, and the table that it describes."""
    try:
        text = _unpacked(data) if ".gz" in name else data
        value = json.loads(text)
        if not isinstance(value, dict):
            raise MalformedFile(f"{name} is not a JSON object")
        snapshots = {one.id: one for one in map(_snapshot, value.get("snapshots") or ())}
        properties = value.get("properties") or {}
        current = snapshots.get(_whole(value.get("current-snapshot-id")) or -1)
        written = _whole(value.get("last-updated-ms")) or 0
        return written, IcebergTable(current, snapshots, dict(properties))
    except _NOT_METADATA:
        raise MalformedFile(f"{name} is not an Iceberg table's metadata") from None


def _unpacked(data: bytes) -> bytes:
    import io

    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        found = file.read(_LONGEST + 1)
    if len(found) > _LONGEST:
        raise ValueError("too large")
    return found


def _snapshot(value: Any) -> TableSnapshot:
    summary = value.get("summary") or {}
    counts = (_whole(summary.get(name)) for name in _COUNTS)
    query, epoch = (summary.get(name, summary.get(name.lower())) for name in (QUERY_ID, EPOCH))
    return TableSnapshot(
        int(value["snapshot-id"]),
        _whole(value.get("parent-snapshot-id")),
        int(value["timestamp-ms"]),
        str(summary.get("operation", "")),
        None if query is None else str(query),
        _whole(epoch),
        *counts,
    )


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
