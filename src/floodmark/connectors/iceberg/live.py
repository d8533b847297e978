"""Asks an Iceberg table which snapshots it still has."""

from __future__ import annotations

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.live_answers import LiveAnswers, SnapshotLine
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.iceberg.offset import KIND, parse_iceberg_offset
from floodmark.connectors.iceberg.table import find_table
from floodmark.connectors.iceberg.table_metadata import IcebergTable
from floodmark.connectors.live import Question
from floodmark.connectors.source import parse_offset_text
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files


def ask(question: Question) -> LiveAnswers:
    source = question.source
    place = source.options.get("path")
    table, _ = find_table(place, question.opened)
    began = _began(question.files, source.position.id)
    return LiveAnswers(lines={source.position.id: snapshot_line(place or "", table, began)})


def snapshot_line(place: str, table: IcebergTable, began: int | None = None) -> SnapshotLine:
    line = tuple(one.id for one in table.line)
    return SnapshotLine(place, line, frozenset(table.snapshots), table.is_whole, began)


def _began(files: Files, source: str) -> int | None:
    """The snapshot that the stream began in, by the source's own note of it."""
    try:
        data = files.read(RelativePath(f"{SOURCES}/{source}/{KIND.start_file}"))
        return parse_iceberg_offset(parse_offset_text(data.decode()))[0]
    except (FloodmarkError, UnicodeDecodeError):
        return None
