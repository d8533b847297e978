"""Stores a repository of snapshots: each content once, named by its digest.

       floodmark-backup.json    what the folder is
       objects/ab/abcd…         a file's content, named by its SHA-256
       snapshots/<id>.json      which files a checkpoint had, and their contents' names
       running/<id>             a backup that has not finished; its objects are not swept

A snapshot's file is written last: a backup that dies leaves objects that no snapshot names, and
the next retention sweeps them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import (
    CannotRead,
    ContentLost,
    FileGone,
    MalformedFile,
    NoAnswer,
    NotACheckpoint,
    UnsafePath,
    WrongUse,
)
from floodmark.screen import ShownInALine
from floodmark.storage.files import Files, WritableFiles

CONFIG = RelativePath("floodmark-backup.json")
OBJECTS, SNAPSHOTS, RUNNING = "objects", "snapshots", "running"
VERSION = 1
_AT_ONCE = 16
_LEFT_BEHIND_MS = 86_400_000
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Stored:
    """One file of a snapshot."""

    path: str
    size: int
    sha256: str
    mtime_ms: int | None = None
    mode: int | None = None
    """The mode of the file when it was stored, if the storage has modes."""


@dataclass(frozen=True, repr=False)
class Snapshot(ShownInALine):
    """A snapshot of a checkpoint in a backup repository."""

    id: str
    """The name of the snapshot in the repository."""
    made_ms: int
    """The time when the snapshot was taken."""
    location: str
    """The checkpoint that it was taken of."""
    query_id: str | None
    """The id by which sinks know the query."""
    batch: int | None
    """The last committed batch."""
    files: tuple[Stored, ...] = field(repr=False)
    """Every file, and where its content lies."""
    folder_mode: int | None = None
    """The mode of the checkpoint's folder, if the storage has modes."""

    @property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Damage:
    snapshot: str
    """The snapshot's id."""
    path: str
    """The path of the file in the snapshot."""
    reason: str
    """The fault of its stored content."""


def object_path(sha256: str) -> RelativePath:
    return RelativePath(f"{OBJECTS}/{sha256[:2]}/{sha256}")


def open_repository(files: WritableFiles, create: bool = False) -> None:
    """Check that the location is a repository; make it one if `create` allows it."""
    try:
        value = json.loads(files.read(CONFIG))
    except FileGone:
        level = files.level()
        if not create:
            raise NotACheckpoint(
                f"{files.root} is not a backup repository",
                f"It has no {CONFIG}.",
                "`floodmark backup CP REPO --execute` makes one.",
            ) from None
        # A backup that died in its first write has left a half-written file.
        other = [name for name in level.files if not name.startswith(f".{CONFIG}.")]
        if other or level.folders:
            raise WrongUse(
                f"{files.root} is not empty, and not a backup repository",
                do="Name an empty folder, or an earlier repository.",
            ) from None
        files.write(CONFIG, json.dumps({"floodmark": "backup", "version": VERSION}).encode())
        return
    except (ValueError, RecursionError):
        raise MalformedFile(
            f"{files.root}/{CONFIG} is not JSON",
            "This file says what the folder is; it was cut short or changed.",
            'Write {"floodmark": "backup", "version": 1} into it, if this is a repository.',
        ) from None
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise MalformedFile(
            f"{files.root}: a backup repository of another version",
            do="Use the floodmark that made it.",
        )


def snapshots(files: Files) -> tuple[Snapshot, ...]:
    """Return all snapshots, oldest first."""
    names = [name for name in files.level(SNAPSHOTS).files if _is_snapshot(name)]
    found = files.read_many(RelativePath(f"{SNAPSHOTS}/{name}") for name in names)
    parsed = [_parse(path, data) for path, data in found.items()]
    return tuple(sorted(parsed, key=lambda snapshot: (snapshot.made_ms, snapshot.id)))


def _is_snapshot(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def choose_snapshot(files: Files, wanted: str | None) -> Snapshot:
    there = snapshots(files)
    if not there:
        raise NoAnswer(
            f"{files.root} holds no snapshot yet",
            do="`floodmark backup CP REPO --execute` makes one.",
        )
    if wanted is None:
        return there[-1]
    fitting = [snapshot for snapshot in there if snapshot.id.startswith(wanted)]
    if len(fitting) != 1:
        names = ", ".join(snapshot.id for snapshot in there[-5:])
        raise WrongUse(
            f"--snapshot {wanted}: {len(fitting) or 'no'} snapshots have such an id",
            f"The newest are: {names}.",
            "`floodmark backup --list REPO` lists them all.",
        )
    return fitting[0]


def _parse(path: str, data: bytes | Exception) -> Snapshot:
    if isinstance(data, Exception):
        raise data
    try:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise TypeError("it is no JSON object")
        body = {key: item for key, item in value.items() if key not in ("digest", "floodmark")}
        if value["digest"] != _digest(body):
            raise MalformedFile(
                f"{path}: the snapshot's list does not match its digest",
                "The list was cut short or changed.",
                "Restore an older one: --snapshot ID.",
            )
        files = tuple(_stored(Stored(**item)) for item in body.pop("files"))
        return _checked(Snapshot(**body, files=files))
    except UnsafePath as error:
        raise MalformedFile(
            f"{path}: the snapshot leads out of its place: {error.what}",
            error.why,
            "Nothing was changed. No backup writes such a list: do not trust the repository.",
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MalformedFile(
            f"{path}: not a snapshot", str(error), "Remove the file; the other snapshots are whole."
        ) from None


def _checked(snapshot: Snapshot) -> Snapshot:
    """Check the types of all fields, as a repository may be a stranger's."""
    if not isinstance(snapshot.location, str) or type(snapshot.made_ms) is not int:
        raise TypeError("a field is of another type")
    if not (_is_mode(snapshot.folder_mode) and RelativePath(snapshot.id)):
        raise TypeError("a field is of another type")
    if not isinstance(snapshot.query_id, (str, type(None))):
        raise TypeError("`query_id` is no text")
    if snapshot.batch is not None and (type(snapshot.batch) is not int or snapshot.batch < 0):
        raise TypeError("`batch` is no number of a batch")
    return snapshot


def _stored(file: Stored) -> Stored:
    RelativePath(file.path)
    if not (isinstance(file.sha256, str) and _SHA256.fullmatch(file.sha256)):
        raise ValueError(f"{file.path}: no content is named")
    if type(file.size) is not int or not _is_mode(file.mode):
        raise TypeError(f"{file.path}: a field is of another type")
    return file


def _is_mode(mode: object) -> bool:
    return mode is None or (type(mode) is int and 0 <= mode <= 0o777)


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def write_snapshot(files: WritableFiles, snapshot: Snapshot) -> None:
    body = {**asdict(snapshot), "files": [asdict(file) for file in snapshot.files]}
    value = {"floodmark": "snapshot", **body, "digest": _digest(body)}
    files.write(RelativePath(f"{SNAPSHOTS}/{snapshot.id}.json"), json.dumps(value).encode())


class RepositoryWriter:
    """Writes contents to a repository, each once."""

    def __init__(self, files: WritableFiles, known: Iterable[Stored]) -> None:
        self._files = files
        self._unchanged: dict[tuple[str, int, int | None], Stored] = {
            (file.path, file.size, file.mtime_ms): file
            for file in known
            if file.mtime_ms is not None
        }
        self._there: set[str] = {file.sha256 for file in known}
        self.written = 0
        """The number of new bytes."""

    def earlier(self, path: str, size: int, mtime_ms: int | None) -> Stored | None:
        """Return an unchanged file of the last snapshot: its content need not be read."""
        return self._unchanged.get((path, size, mtime_ms))

    def put(self, path: str, data: bytes, mtime_ms: int | None, mode: int | None = None) -> Stored:
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._there:
            if self._files.create(object_path(sha256), data):
                self.written += len(data)
            self._there.add(sha256)
        return Stored(path, len(data), sha256, mtime_ms, mode)


def fetch_object(files: Files, name: str, path: str) -> bytes:
    """Return an object's content, checked against its name; `path` is the file that needs it."""
    try:
        data = files.read(RelativePath(name))
    except FileGone:
        raise ContentLost(
            f"{path}: its content is gone from the repository",
            f"{name} is missing.",
            "`floodmark backup --check REPO` tells which snapshots are whole.",
        ) from None
    if hashlib.sha256(data).hexdigest() != name.rsplit("/", 1)[-1]:
        raise ContentLost(
            f"{path}: its content in the repository is damaged",
            f"{name} does not have the content that its name says.",
            "`floodmark backup --check REPO` tells which snapshots are whole.",
        )
    return data


def fetch(files: Files, stored: Stored) -> bytes:
    return fetch_object(files, object_path(stored.sha256), stored.path)


def check(files: Files) -> tuple[Damage, ...]:
    """Read everything that a snapshot needs, each content once."""
    wanted: dict[str, tuple[str, Stored]] = {}
    for snapshot in snapshots(files):
        for stored in snapshot.files:
            wanted.setdefault(stored.sha256, (snapshot.id, stored))

    def look(item: tuple[str, Stored]) -> Damage | None:
        try:
            fetch(files, item[1])
        except CannotRead as error:
            return Damage(item[0], item[1].path, error.why)
        return None

    with ThreadPoolExecutor(_AT_ONCE if files.reads_cost else 1) as pool:
        return tuple(found for found in pool.map(look, wanted.values()) if found)


def retained(
    all_snapshots: Iterable[Snapshot],
    keep_last: int | None,
    keep_daily: int | None,
    day_of: Callable[[int], str],
) -> set[str]:
    """Return the ids to keep: the newest ones, and the newest one of each of the last days."""
    newest_first = sorted(all_snapshots, key=lambda s: (s.made_ms, s.id), reverse=True)
    if keep_last is None and keep_daily is None:
        return {snapshot.id for snapshot in newest_first}
    kept = {snapshot.id for snapshot in newest_first[: keep_last or 0]}
    days: set[str] = set()
    for snapshot in newest_first:
        day = day_of(snapshot.made_ms)
        if day not in days and len(days) < (keep_daily or 0):
            days.add(day)
            kept.add(snapshot.id)
    return kept or {snapshot.id for snapshot in newest_first[:1]}


def sweep(files: WritableFiles, keep: set[str], now_ms: int, mine: str) -> int:
    """Remove other snapshots, then contents that no snapshot names; return their number."""
    there = snapshots(files)
    gone = [snapshot for snapshot in there if snapshot.id not in keep]
    files.delete(RelativePath(f"{SNAPSHOTS}/{snapshot.id}.json") for snapshot in gone)
    if _others_run(files, now_ms, mine):
        return len(gone)  # another backup's contents are not named by a snapshot yet
    named = {object_path(f.sha256) for s in there if s.id in keep for f in s.files}
    loose = [file.path for file in files.list(OBJECTS).files if file.path not in named]
    files.delete(map(RelativePath, loose))
    return len(gone)


def _others_run(files: Files, now_ms: int, mine: str) -> bool:
    for name in files.level(RUNNING).files:
        if name == mine or name.startswith("."):
            continue
        try:
            began = int(files.read(RelativePath(f"{RUNNING}/{name}")))
        except (FileGone, ValueError):
            continue
        if now_ms - began < _LEFT_BEHIND_MS:
            return True
    return False
