"""Asks a Delta table which versions and files it still has, and where it stood at a time."""

from __future__ import annotations

from urllib.parse import unquote

from floodmark.checkpoint.live_answers import LiveAnswers, TableLog
from floodmark.checkpoint.text import moment
from floodmark.connectors.delta import table_log
from floodmark.connectors.delta.offset import BASE_INDEXES, DeltaOffset, parse_delta_offset
from floodmark.connectors.live import (
    IN_THE_LOG,
    Open,
    PlaceAtTime,
    Question,
    SourceToAsk,
    TimeQuestion,
)
from floodmark.connectors.source import render_json
from floodmark.errors import BatchPurged, MalformedFile, NoAnswer, WouldLose, WrongUse
from floodmark.storage.files import Files

_FILES_LOOKED_AT = 2000
_COMMITS_LOOKED_AT = 20
_BEFORE_FIRST_FILE = -1


def ask(question: Question) -> LiveAnswers:
    """Return the versions that the table's log holds, and missing files that the next batch
    reads.
    """
    source = question.source
    return LiveAnswers(tables={source.position.id: _table(source, question.opened)})


def _table(source: SourceToAsk, opened: Open) -> TableLog:
    place = source.options.get("path")
    if not place:
        raise MalformedFile("the location of its table is not known (--table PATH)")
    files = opened(place)
    versions = table_log.versions(files)
    if not versions:
        return TableLog(place, None, -1, -1)
    offset = parse_delta_offset(source.position.offset)
    gone = () if offset.is_starting_version else _vacuumed(files, offset, versions)
    return TableLog(place, table_log.table_id(files), versions[0], versions[-1], gone)


def _vacuumed(files: Files, offset: DeltaOffset, versions: list[int]) -> tuple[str, ...]:
    ahead = [version for version in versions if version >= offset.reservoir_version]
    wanted: list[str] = []
    for version in ahead[:_COMMITS_LOOKED_AT]:
        added = [
            unquote(str(action["add"].get("path", "")))
            for action in table_log.actions(files, version)
            if isinstance(action.get("add"), dict) and action["add"].get("dataChange", True)
        ]
        if version == offset.reservoir_version and offset.index not in BASE_INDEXES:
            added = added[max(0, offset.index + 1) :]
        wanted += added
    # A shallow clone names files of another table by their full address.
    own = [path for path in wanted[:_FILES_LOOKED_AT] if ":" not in path]
    return _absent(files, own)


def _absent(files: Files, paths: list[str]) -> tuple[str, ...]:
    folders = {path.rpartition("/")[0] for path in paths}
    there = {
        f"{folder}/{name}" if folder else name
        for folder in folders
        for name in files.level(folder).files
    }
    return tuple(path for path in paths if path not in there)


def place_at(question: TimeQuestion) -> PlaceAtTime:
    """Return where the source stood at a time, by the times of the table's versions."""
    source, time_ms = question.source.position, question.time_ms
    table = question.places.table or question.source.options.get("path")
    if table is None:
        raise BatchPurged(
            f"no batch of {moment(time_ms)} is logged any more, and the Delta table was not asked",
            "The table's location is not known: this stream was not started by `floodmark run`.",
            f"Give it, so that its history can be asked: --table PATH. {IN_THE_LOG}",
        )
    now = parse_delta_offset(source.offset)
    if now.is_starting_version:
        raise WouldLose(
            f"--to-time: source {source.id} is still inside the first snapshot of {table}",
            "The files of the snapshot have no order by time, so no position in it matches a time. "
            "Any later version would leave out the unread files of the snapshot.",
            "Choose a batch that is logged: --to-batch N. `floodmark batches CP` lists them.",
        )
    times = table_log.version_times(_same_table(question.opened(table), table, now.reservoir_id))
    oldest = min(times)
    later = [version for version, at_ms in sorted(times.items()) if at_ms >= time_ms]
    version = later[0] if later else max(times) + 1
    if version >= now.reservoir_version:
        return PlaceAtTime(
            source.text or "",
            notes=(f"The stream keeps its position in {table}: it had not read further then.",),
        )
    lost = []
    if version == oldest > 0 and times[oldest] > time_ms:
        lost.append(
            f"{table}: versions before {oldest} ({moment(times[oldest])}) are cleaned up, and may "
            "have held records of that time"
        )
    place = {
        "sourceVersion": 1,
        "reservoirId": now.reservoir_id,
        "reservoirVersion": version,
        "index": _BEFORE_FIRST_FILE,
        "isStartingVersion": False,
    }
    note = f"The stream reads {table} from version {version}, the first since {moment(time_ms)}."
    return PlaceAtTime(render_json(place), lost, (note,))


def _same_table(files: Files, location: str, wanted: str) -> Files:
    if not table_log.is_delta_table(files):
        raise NoAnswer(
            f"{location} is not a Delta table: it has no log",
            do="Name the folder that the source reads: --table PATH.",
        )
    found = table_log.table_id(files)
    if found is not None and found != wanted:
        raise WrongUse(
            f"{location} is not the table that the stream reads",
            f"The table's id is {found}; the checkpoint's source has {wanted}.",
            "Name the folder that the source reads: --table PATH.",
        )
    return files
