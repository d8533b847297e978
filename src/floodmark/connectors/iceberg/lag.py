"""Counts how far a stream is behind its Iceberg table, in snapshots, files, bytes and rows."""

from __future__ import annotations

from dataclasses import replace

from floodmark.connectors.behind import Behind, PartLag, SourceLag, total
from floodmark.connectors.iceberg.live import snapshot_line
from floodmark.connectors.iceberg.offset import BEFORE_FIRST, parse_iceberg_offset
from floodmark.connectors.iceberg.reach import shortfall
from floodmark.connectors.iceberg.table import find_table
from floodmark.connectors.iceberg.table_metadata import APPEND, IcebergTable, TableSnapshot
from floodmark.connectors.lag import LagQuestion
from floodmark.errors import CannotRead, NoAnswer

_MAX_AGE = ("history.expire.max-snapshot-age-ms", 5 * 86_400_000)


def lag(question: LagQuestion) -> SourceLag:
    source = question.source.position
    place = question.places.table or question.source.options.get("path")
    if source.offset is None:
        raise CannotRead("No batch is finished, so the start of the stream is not known.")
    table, notes = find_table(place, question.opened, question.timeout)
    assert place is not None
    snapshot, position = parse_iceberg_offset(source.offset)
    missing = shortfall(snapshot, snapshot_line(place, table))
    if missing is not None and snapshot != BEFORE_FIRST:
        raise NoAnswer(f"{missing.words}.")
    if missing is not None:
        notes.append(f"{missing.words}.")
    later = table.since(None if snapshot == BEFORE_FIRST else snapshot) or []
    at = table.snapshots.get(snapshot)
    unread = [*_rest(at, position, source.offset.get("scan_all_files") is True), *later]
    read, skipped = _appended(unread)
    if skipped:
        what = "1 snapshot" if skipped == 1 else f"{skipped:,} snapshots"
        are = "is" if skipped == 1 else "are"
        notes.append(f"{what} without appended files {are} not counted: Spark skips them or stops.")
    if any(one.added_files and one.added_records is None for one in read):
        notes.append("The stream has read a part of a snapshot: its unread rows are not known.")
    behind = _behind(read, question.now_ms)
    left = _left(question, table, at, behind)
    end = table.current.id if table.current else None
    part = PartLag(place, snapshot, end, _oldest(table), behind.records, behind.ms, left)
    return SourceLag(source.id, source.kind, behind, (part,), left, None, place, tuple(notes))


def _rest(at: TableSnapshot | None, position: int, whole: bool) -> list[TableSnapshot]:
    """Return what is unread of the snapshot in which the stream stands."""
    if at is None:
        return []
    files, rows, size = at.added_files, at.added_records, at.added_bytes
    if whole:
        files, rows, size = at.total_files, at.total_records, at.total_bytes
    if files is not None and position >= files:
        return []
    if position > 0:
        rows = size = None  # a summary has no numbers of single files
    left = None if files is None else files - max(0, position)
    return [replace(at, operation=APPEND, added_files=left, added_records=rows, added_bytes=size)]


def _appended(snapshots: list[TableSnapshot]) -> tuple[list[TableSnapshot], int]:
    read = [one for one in snapshots if one.operation == APPEND]
    return read, len(snapshots) - len(read)


def _behind(read: list[TableSnapshot], now_ms: int) -> Behind:
    return Behind(
        total(one.added_records for one in read),
        total(one.added_bytes for one in read),
        max(0, now_ms - read[0].time_ms) if read else 0,
        len(read),
        total(one.added_files for one in read),
    )


def _left(
    question: LagQuestion, table: IcebergTable, at: TableSnapshot | None, behind: Behind
) -> int | None:
    """Return how long the stream's own snapshot stays; the current one never expires."""
    if at is None or at == table.current or not behind.versions:
        return None
    name, usual = _MAX_AGE
    try:
        age = int(table.properties.get(name, usual))
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0, at.time_ms + age - question.now_ms)


def _oldest(table: IcebergTable) -> int | None:
    oldest = min(table.snapshots.values(), key=lambda one: one.time_ms, default=None)
    return None if oldest is None else oldest.id
