"""Counts how far a stream is behind its Delta table, in versions, files, bytes and rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.live_answers import TableLog
from floodmark.connectors.behind import Behind, PartLag, SourceLag, soonest, total
from floodmark.connectors.delta import table_log
from floodmark.connectors.delta.offset import DeltaOffset, parse_delta_offset
from floodmark.connectors.delta.reach import shortfall
from floodmark.connectors.lag import LagQuestion
from floodmark.errors import CannotRead, FloodmarkError, NoAnswer
from floodmark.storage.files import Files

_COMMITS_READ = 5000
_DAY_MS = 86_400_000
_LOG_KEPT = ("delta.logRetentionDuration", 30 * _DAY_MS)
_FILES_KEPT = ("delta.deletedFileRetentionDuration", 7 * _DAY_MS)
_LENGTH = re.compile(r"(\d{1,12})\s+(second|minute|hour|day|week)s?", re.IGNORECASE)
_UNIT_MS = {
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": _DAY_MS,
    "week": 7 * _DAY_MS,
}


@dataclass(frozen=True)
class UnreadFile:
    path: str
    bytes: int | None
    rows: int | None
    modified_ms: int | None


def lag(question: LagQuestion) -> SourceLag:
    source, options = question.source.position, question.source.options
    place = question.places.table or options.get("path")
    if not place:
        raise CannotRead(
            "The Delta table was not asked: its location is not known.", do="Give it: --table PATH."
        )
    offset = _position(question)
    files = question.opened(place)
    written = table_log.commit_files(files)
    versions = sorted(written)
    described = (table_log.metadata(files) if versions else None) or {}
    identity = described.get("id")
    known = TableLog(
        place,
        None if identity is None else str(identity),
        versions[0] if versions else -1,
        versions[-1] if versions else -1,
    )
    missing = shortfall(offset, known)
    if missing is not None and offset.reservoir_version >= known.first:
        raise NoAnswer(f"{missing.words}.")
    end = known.last + 1
    notes = [] if missing is None else [f"{missing.words}."]
    lost = max(0, known.first - offset.reservoir_version)
    ahead = [version for version in versions if version >= offset.reservoir_version]
    unread, removed_ms, more = _unread(files, offset, ahead, options)
    notes += more
    # Clean-up of the log goes by the age of its files.
    first_ms = written[ahead[0]].mtime_ms if ahead else None
    left = _left(question.now_ms, described, first_ms, removed_ms, bool(ahead))
    versions_behind = max(0, end - offset.reservoir_version)
    behind = _behind(question.now_ms, versions_behind, unread, bool(ahead), first_ms)
    part = PartLag(
        place,
        offset.reservoir_version,
        end,
        known.first,
        behind.records,
        behind.ms,
        left,
        lost,
    )
    return SourceLag(source.id, source.kind, behind, (part,), left, lost, place, tuple(notes))


def _position(question: LagQuestion) -> DeltaOffset:
    offset = question.source.position.offset
    if offset is not None:
        return parse_delta_offset(offset)
    planned = question.planned
    if planned is not None and planned.offset is not None:
        found = parse_delta_offset(planned.offset)
        if found.is_starting_version:
            # The first batch is in flight: it reads the snapshot from the first file on.
            return DeltaOffset(
                found.reservoir_id, found.reservoir_version, -1, True, found.source_version
            )
    raise CannotRead("No batch is finished, so the version where the stream begins is not known.")


def _unread(
    files: Files, offset: DeltaOffset, ahead: list[int], options: Mapping[str, str]
) -> tuple[list[UnreadFile] | None, int | None, list[str]]:
    """Return the unread files, the first removal of one of them, and notes on what is not
    counted.
    """
    if any(
        options.get(name, "").lower() == "true" for name in ("readchangefeed", "readchangedata")
    ):
        return None, None, ["The stream reads the change feed; its files and rows are not counted."]
    if len(ahead) > _COMMITS_READ:
        return None, None, [f"Files are not counted in more than {_COMMITS_READ:,} versions."]
    unread: list[UnreadFile] = []
    removals: dict[str, int] = {}
    try:
        for version, actions in table_log.commits(files, ahead):
            if version == offset.reservoir_version and offset.is_starting_version:
                unread += _of_snapshot(files, offset)
                continue
            added = [_file(one) for one in _of(actions, "add") if one.get("dataChange", True)]
            if version == offset.reservoir_version and offset.index >= 0:
                added = added[offset.index + 1 :]
            unread += added
            for one in _of(actions, "remove"):
                at_ms = one.get("deletionTimestamp")
                if type(at_ms) is int:
                    removals.setdefault(str(one.get("path")), at_ms)
    except FloodmarkError as error:
        return None, None, [f"Files are not counted: {error.what}."]
    gone = [removals[one.path] for one in unread if one.path in removals]
    return unread, min(gone, default=None), _without_rows(unread)


def _without_rows(unread: list[UnreadFile]) -> list[str]:
    silent = sum(1 for one in unread if one.rows is None)
    if not silent:
        return []
    are = "file has" if silent == 1 else "files have"
    return [f"Rows are not known: {silent:,} {are} no numRecords among their statistics."]


def _of(actions: Iterable[Mapping[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if isinstance(action.get(kind), dict)]


def _of_snapshot(files: Files, offset: DeltaOffset) -> list[UnreadFile]:
    """Return the unread files of the table's first snapshot, in Spark's order: by time, then
    path.
    """
    active = {one.path: one for one in _active_files(files, offset.reservoir_version)}
    ordered = sorted(active.values(), key=lambda one: (one.modified_ms or 0, one.path))
    return ordered[max(0, offset.index + 1) :]


def _active_files(files: Files, version: int) -> Iterable[UnreadFile]:
    saved = {at: paths for at, paths in table_log.checkpoints(files).items() if at <= version}
    since = max(saved, default=-1)
    active: dict[str, UnreadFile] = {}
    if saved:
        if any(table_log.saved_actions(files, saved[since], "sidecar")):
            raise CannotRead(
                "the log's checkpoint names its files in sidecars, which floodmark does not read"
            )
        for one in table_log.saved_actions(files, saved[since], "add"):
            active[str(one.get("path"))] = _file(one)
    later = [one for one in table_log.versions(files) if since < one <= version]
    if later != list(range(since + 1, version + 1)):
        raise CannotRead(f"the log no longer has all commits up to version {version}")
    if len(later) > _COMMITS_READ:
        raise CannotRead(f"version {version} needs {len(later):,} commits, too many to read")
    for _, actions in table_log.commits(files, later):
        for one in _of(actions, "remove"):
            active.pop(str(one.get("path")), None)
        for one in _of(actions, "add"):
            active[str(one.get("path"))] = _file(one)
    return active.values()


def _file(add: Mapping[str, Any]) -> UnreadFile:
    size, modified = add.get("size"), add.get("modificationTime")
    return UnreadFile(
        str(add.get("path")),
        size if type(size) is int else None,
        _rows(add),
        modified if type(modified) is int else None,
    )


def _rows(add: Mapping[str, Any]) -> int | None:
    try:
        rows = json.loads(add["stats"])["numRecords"]
        deleted = (add.get("deletionVector") or {}).get("cardinality", 0)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    if type(rows) is not int or type(deleted) is not int:
        return None
    return max(0, rows - deleted)


def _behind(
    now_ms: int,
    versions: int,
    unread: list[UnreadFile] | None,
    is_behind: bool,
    first_ms: int | None,
) -> Behind:
    if unread is None:
        age = 0 if not is_behind else None if first_ms is None else max(0, now_ms - first_ms)
        return Behind(None, None, age, versions, None)
    if not unread:
        # The unread rest of the version, and all later versions, hold no data.
        return Behind(0, 0, 0, versions, 0)
    written = [one.modified_ms for one in unread if one.modified_ms is not None]
    age = max(0, now_ms - min(written)) if len(written) == len(unread) else None
    rows, size = total(one.rows for one in unread), total(one.bytes for one in unread)
    return Behind(rows, size, age, versions, len(unread))


def _left(
    now_ms: int,
    described: Mapping[str, Any],
    committed_ms: int | None,
    removed_ms: int | None,
    is_behind: bool,
) -> int | None:
    """Return how long the log and the files surely stay: clean-up and vacuum run only on demand."""
    settings = described.get("configuration")
    settings = settings if isinstance(settings, dict) else {}
    log, data = _kept(settings, *_LOG_KEPT), _kept(settings, *_FILES_KEPT)
    if log is None:
        return None
    # The stream has read everything: a commit made now would stay that long.
    log_left = log if not is_behind else None
    if is_behind and committed_ms is not None:
        log_left = min(log, max(0, committed_ms + log - now_ms))
    data_left = None
    if removed_ms is not None and data is not None:
        data_left = max(0, removed_ms + data - now_ms)
    return soonest((log_left, data_left))


def _kept(settings: Mapping[str, Any], name: str, default: int) -> int | None:
    value = settings.get(name)
    if value is None:
        return default
    parts = _LENGTH.findall(str(value))
    return sum(int(n) * _UNIT_MS[unit.lower()] for n, unit in parts) if parts else None
