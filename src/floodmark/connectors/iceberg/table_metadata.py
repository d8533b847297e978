"""An Iceberg table's metadata: its snapshots, and what each of them added. Pure.

Every change writes `metadata/<n>-<uuid>.metadata.json` (or `v<n>.metadata.json`) anew, with all
snapshots that are not expired; a snapshot's summary counts what it added.
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
"""Iceberg's sink writes them into the summary of each batch's snapshot (SparkWrite). What
`once.iceberg` writes goes through an option of Spark, whose names come out in lower case."""
_COUNTS = (
    *("added-data-files", "added-records", "added-files-size"),
    *("total-data-files", "total-records", "total-files-size"),
)
_NOT_METADATA = (
    *(ValueError, TypeError, ArithmeticError, LookupError, AttributeError),
    *(RecursionError, OSError, EOFError),
)
"""What reading a file of any other content ends with."""


@dataclass(frozen=True)
class TableSnapshot:
    id: int
    parent: int | None
    time_ms: int
    operation: str
    query_id: str | None
    epoch: int | None
    """The streaming query that wrote it, and the number of the batch."""
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
        """From the current snapshot back, by parents, as far as they are not expired."""
        found: dict[int, TableSnapshot] = {}
        at = self.current
        while at is not None and at.id not in found:
            found[at.id] = at
            at = None if at.parent is None else self.snapshots.get(at.parent)
        return tuple(found.values())

    @property
    def is_whole(self) -> bool:
        """The line reaches back to a snapshot that has no parent: none of it is expired."""
        return not self.line or self.line[-1].parent is None

    def since(self, snapshot: int | None) -> list[TableSnapshot] | None:
        """The line after a snapshot, oldest first; None where the snapshot is not in it."""
        ids = [one.id for one in self.line]
        if snapshot is None:
            return list(self.line[::-1])
        return list(self.line[: ids.index(snapshot)][::-1]) if snapshot in ids else None


def newest_names(names: Iterable[str]) -> list[str]:
    """The metadata files with the highest number; more than one after a commit that failed."""
    numbered = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name))]
    newest = max((number for number, _ in numbered), default=-1)
    return sorted(name for number, name in numbered if number == newest)


def parse_table_metadata(name: str, data: bytes) -> tuple[int, IcebergTable]:
    """When it was written, and what it says."""
    try:
        text = _unpacked(data) if ".gz" in name else data
        value = json.loads(text)
        if not isinstance(value, dict):
            raise MalformedFile(f"{name} is no JSON object")
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
