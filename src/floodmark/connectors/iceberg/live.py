"""Asks an Iceberg table which snapshots it still has, and where it stood at a time."""

from __future__ import annotations

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.live_answers import LiveAnswers, SnapshotLine
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.text import moment
from floodmark.connectors.iceberg.offset import BEFORE_FIRST, KIND, parse_iceberg_offset
from floodmark.connectors.iceberg.reach import shortfall
from floodmark.connectors.iceberg.table import find_table
from floodmark.connectors.iceberg.table_metadata import IcebergTable
from floodmark.connectors.live import PlaceAtTime, Question, TimeQuestion
from floodmark.connectors.source import parse_offset_text, render_json
from floodmark.errors import FloodmarkError, NoAnswer
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


def place_at(question: TimeQuestion) -> PlaceAtTime:
    """Return where the source stood at a time: at the end of the last snapshot before it."""
    source = question.source.position
    place = question.places.table or question.source.options.get("path")
    table, notes = find_table(place, question.opened)
    now = parse_iceberg_offset(source.offset)[0]
    missing = shortfall(now, snapshot_line(place or "", table))
    if missing is not None:
        raise NoAnswer(f"--to-time: {missing.words}", do="Give the table that the stream reads.")
    later = {one.id for one in table.since(now) or ()}
    read = [one for one in table.line if one.id not in later]
    before = [one for one in read if one.time_ms < question.time_ms]
    if len(before) == len(read):
        words = f"The stream keeps its position in {place}: it had not read further then."
        return PlaceAtTime(source.text or "", notes=(words, *notes))
    lost = []
    if before:
        at, position = before[0].id, before[0].added_files or 0
        made = moment(before[0].time_ms)
        words = f"The stream reads {place} from the end of snapshot {at}, made {made}."
    elif table.is_whole:
        at = position = BEFORE_FIRST
        words = f"The stream reads {place} from its first snapshot."
    else:
        at, position = read[-1].id, 0
        words = f"The stream reads {place} from snapshot {at}, the oldest that is left."
        lost.append(
            f"{place}: snapshots before {at} ({moment(read[-1].time_ms)}) have expired, and may "
            "have added records of that time"
        )
    offset = {"version": 1, "snapshot_id": at, "position": position, "scan_all_files": False}
    return PlaceAtTime(render_json(offset), lost, (words, *notes))


def _began(files: Files, source: str) -> int | None:
    """Return the snapshot in which the stream began, from the source's own file."""
    try:
        data = files.read(RelativePath(f"{SOURCES}/{source}/{KIND.start_file}"))
        return parse_iceberg_offset(parse_offset_text(data.decode()))[0]
    except (FloodmarkError, UnicodeDecodeError):
        return None
