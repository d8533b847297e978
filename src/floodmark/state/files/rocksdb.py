"""Reads RocksDB state: snapshot zips, changelogs, and the rows of a version.

RocksDB itself opens the database files (statestore/rocksdb_files.py); this module never parses
them.
"""

from __future__ import annotations

import io
import itertools
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.text import (
    decode,
    long_of,
    parse_json,
    parse_json_object,
    shorten,
    split_version,
)
from floodmark.errors import MalformedFile, UnknownVersion
from floodmark.limits import current, over_limit
from floodmark.state.files.compression import decompress
from floodmark.state.files.hdfs import StateSource, live_records, verified
from floodmark.state.files.javadata import DataReader
from floodmark.state.files.records import Records, scan
from floodmark.state.rows.rowbytes import as_bytes, row_bytes

NEWEST_ZIP_VERSION = 2
"""Spark 4.0 wrote the number of the checkpoint format here, so v2 means the same as v1."""

NEWEST_CHANGELOG = 4
_MOST_ENTRIES = 10_000
_RECORDS_COST = 8
_A_CHANGE = 250
"""Bytes for a typed change as a Python object."""
PUT, DELETE, MERGE, DELETE_RANGE, END = 0x01, 0x10, 0x11, 0x20, 0x00


@dataclass(frozen=True)
class SnapshotFile:
    """An SST or an archived log: its name in the database, and its name in the folder."""

    local: str
    stored: str
    size: int


@dataclass(frozen=True)
class RocksSnapshot:
    tables: tuple[SnapshotFile, ...]
    logs: tuple[SnapshotFile, ...]
    num_keys: int
    families: dict[str, int]
    """Column family → the number before each of its keys; empty if there are no families."""
    files: dict[str, bytes]
    """The files in the zip itself, such as the manifest."""
    internal: frozenset[str] = frozenset()
    """The column families that Spark keeps for itself."""
    version: int = 1
    """The version that the zip names: 2 if Spark 4.0 wrote it with unique ids."""


def read_snapshot(data: bytes) -> RocksSnapshot:
    files = _unzip(data)
    if "metadata" not in files:
        raise MalformedFile("the snapshot's zip has no metadata entry")
    version, rest = split_version(decode(files.pop("metadata")), NEWEST_ZIP_VERSION)
    fields = parse_json_object(rest, "the snapshot's metadata")
    return RocksSnapshot(
        _tables(fields.get("sstFiles"), "dfsSstFileName"),
        _tables(fields.get("logFiles"), "dfsLogFileName"),
        long_of(fields, "numKeys", "the snapshot's metadata", -1),
        _families(fields.get("columnFamilyMapping")),
        files,
        _internal(fields.get("columnFamilyTypeMap")),
        version,
    )


def _unzip(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries)
            return {entry.filename: _entry(archive, entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise MalformedFile(f"the snapshot's zip is damaged: {error}") from None
    except (RuntimeError, ValueError, OverflowError, struct.error) as error:
        raise MalformedFile(f"the snapshot's zip cannot be read: {error}") from None


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > _MOST_ENTRIES:
        raise MalformedFile(f"the snapshot's zip has {len(entries)} entries")
    for entry in entries:
        check_name(entry.filename)
    size = sum(entry.file_size for entry in entries)
    if size > current().of("zip"):
        raise over_limit("the unpacked content of the snapshot's zip", size, "zip")


def check_name(name: str) -> None:
    """Refuse a name that is not a plain file name: it must not lead out of its folder."""
    if not name or name in (".", "..") or set(name) & set("/\\\0:"):
        raise MalformedFile(f"the snapshot names a file outside its folder: {shorten(name)!r}")


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise MalformedFile(f"the zip's entry {entry.filename!r} is not as long as it says")
    return content


def _tables(value: Any, stored: str) -> tuple[SnapshotFile, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise MalformedFile(f"the snapshot's files are {shorten(repr(value))}")
    tables = []
    for item in value:
        names = item.get("localFileName"), item.get(stored)
        if not all(isinstance(name, str) for name in names):
            raise MalformedFile(f"the snapshot names a file {shorten(repr(item))}")
        for name in names:
            check_name(name)
        tables.append(SnapshotFile(*names, long_of(item, "sizeBytes", "a file of the snapshot")))
    return tuple(tables)


def _families(value: Any) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(
        type(number) is int and -(2**15) <= number < 2**15 for number in value.values()
    ):
        raise MalformedFile(f"columnFamilyMapping is {shorten(repr(value))}")
    return dict(value)


def _internal(value: Any) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, dict):
        raise MalformedFile(f"columnFamilyTypeMap is {shorten(repr(value))}")
    return frozenset(name for name, internal in value.items() if internal is True)


@dataclass(frozen=True)
class ChangelogRecord:
    """One typed record of a changelog. `other` is the value, or the end of a range."""

    kind: int
    key: bytes
    other: bytes


@dataclass(frozen=True)
class Changelog:
    version: int
    lineage: tuple[tuple[int, str], ...]
    """v3 and v4: the (version, unique id) of every file since the last snapshot."""
    records: Records | None
    """v1 and v3: puts and deletes."""
    changes: tuple[ChangelogRecord, ...] = ()
    """v2 and v4: these know column families, merges and ranges."""


def parse_changelog(data: bytes, row_checksums: bool = False) -> Changelog:
    # A small record needs several times its bytes in Python.
    content = decompress(data, current().memory // _RECORDS_COST)
    reader = DataReader(content)
    version = _changelog_version(reader)
    lineage = parse_lineage(reader.utf()) if version >= 3 else ()
    if version in (1, 3):
        found = scan(as_bytes(content), reader.position)
        if not found.ended:
            raise MalformedFile("the changelog ends before its last record")
        records = found.records
        return Changelog(version, lineage, _unchecked(records) if row_checksums else records)
    changes = tuple(_changes(reader))
    if row_checksums:
        changes = tuple(_checked(change) for change in changes)
    return Changelog(version, lineage, None, changes)


def changelog_head(content: bytes) -> tuple[int, int]:
    """Return (version, where the records begin) from a changelog's first bytes."""
    reader = DataReader(content)
    version = _changelog_version(reader)
    if version >= 3:
        reader.utf()
    return version, reader.position


def _changelog_version(reader: DataReader) -> int:
    """Return the version; v1 has no header, so any other beginning means v1."""
    try:
        text = reader.utf()
    except MalformedFile:
        text = ""
    digits = text[1:]
    if not (text.startswith("v") and digits.isascii() and digits.isdecimal() and len(digits) < 5):
        reader.position = 0
        return 1
    if int(digits) > NEWEST_CHANGELOG or int(digits) < 2:
        raise UnknownVersion(text, f"v{NEWEST_CHANGELOG}")
    return int(digits)


def parse_lineage(text: str) -> tuple[tuple[int, str], ...]:
    items = parse_json(text, "the changelog's lineage")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedFile(f"the changelog's lineage is {shorten(text)}")
    lineage = []
    for item in items:
        unique = item.get("checkpointUniqueId")
        if not isinstance(unique, str):
            raise MalformedFile(f"the changelog's lineage names {shorten(repr(item))}")
        check_name(unique)
        lineage.append((long_of(item, "version", "the lineage"), unique))
    return tuple(lineage)


def _changes(reader: DataReader) -> Iterator[ChangelogRecord]:
    most = current().memory // _A_CHANGE
    for count in itertools.count():
        if count > most:
            raise over_limit(f"a list of over {most:,} changes", None, "memory")
        kind = reader.take(1)[0]
        if kind == END:
            return
        if kind not in (PUT, DELETE, MERGE, DELETE_RANGE):
            raise MalformedFile(
                f"a record of unknown type {kind:#04x} at byte {reader.position - 1}"
            )
        key = reader.take(reader.int32())
        if kind == DELETE:
            if reader.int32() != -1:
                raise MalformedFile(f"a deleted key has a value, before byte {reader.position}")
            yield ChangelogRecord(kind, key, b"")
        else:
            yield ChangelogRecord(kind, key, reader.take(reader.int32()))


def _checked(change: ChangelogRecord) -> ChangelogRecord:
    """Check and remove the checksums of deletes and ranges; values keep theirs in the store."""
    if change.kind == DELETE:
        key = row_bytes([change.key])
        return ChangelogRecord(DELETE, verified(_removal(key)).keys[0], b"")
    if change.kind == DELETE_RANGE:
        return ChangelogRecord(DELETE_RANGE, change.key, change.other[8:])
    return change


def _removal(keys: Any) -> Records:
    import numpy as np

    return Records(keys, keys.take(slice(0, len(keys))).trim(0), np.ones(len(keys), bool))


def _unchecked(records: Records) -> Records:
    """Remove the checksums before removed keys; values keep theirs."""
    import numpy as np

    gone = np.nonzero(records.removed)[0]
    if not len(gone):
        return records
    checked = verified(_removal(records.keys.take(gone))).keys
    starts, lengths = records.keys.starts.copy(), records.keys.lengths.copy()
    starts[gone], lengths[gone] = checked.starts, checked.lengths
    keys = type(records.keys)(records.keys.data, starts, lengths)
    return Records(keys, records.values, records.removed)


@dataclass(frozen=True)
class Base:
    """An opened snapshot, or nothing at version 0."""

    records: Callable[[], Iterator[Records]]
    get: Callable[[bytes], bytes | None]


NOTHING = Base(lambda: iter(()), lambda key: None)


def replay(base: Base, changelogs: Sequence[Changelog], delimiter: bytes) -> Iterator[Records]:
    """Yield the rows of a snapshot after applying the changelogs, oldest first."""
    if any(log.changes for log in changelogs):
        return _replay_changes(base, changelogs, delimiter)
    newest_first = [
        StateSource(f"v{log.version}", True, lambda log=log: iter([log.records]))  # type: ignore[misc]
        for log in reversed(changelogs)
        if log.records is not None and len(log.records)
    ]
    return live_records([*newest_first, StateSource("snapshot", False, base.records)])


class _Overlay:
    """The effect of changelogs on a snapshot, key by key."""

    def __init__(self, base: Base, delimiter: bytes) -> None:
        self.base = base
        self.delimiter = delimiter
        self.rows: dict[bytes, bytes | None] = {}
        self.gone: list[tuple[bytes, bytes]] = []

    def value(self, key: bytes) -> bytes | None:
        if key in self.rows:
            return self.rows[key]
        return None if self.hides(key) else self.base.get(key)

    def hides(self, key: bytes) -> bool:
        return any(begin <= key < end for begin, end in self.gone)

    def apply(self, change: ChangelogRecord) -> None:
        if change.kind == PUT:
            self.rows[change.key] = change.other
        elif change.kind == DELETE:
            self.rows[change.key] = None
        elif change.kind == MERGE:
            before = self.value(change.key)
            joined = change.other if before is None else before + self.delimiter + change.other
            self.rows[change.key] = joined
        else:
            self.gone.append((change.key, change.other))
            for key in self.rows:
                if change.key <= key < change.other:
                    self.rows[key] = None


def _typed(log: Changelog) -> Iterator[ChangelogRecord]:
    if log.records is None:
        yield from log.changes
        return
    records = log.records
    keys, values = records.keys.to_list(), records.values.to_list()
    for key, value, removed in zip(keys, values, records.removed.tolist(), strict=True):
        yield ChangelogRecord(DELETE if removed else PUT, key, value)


def _replay_changes(
    base: Base, changelogs: Sequence[Changelog], delimiter: bytes
) -> Iterator[Records]:
    import numpy as np

    overlay = _Overlay(base, delimiter)
    for log in changelogs:
        for change in _typed(log):
            overlay.apply(change)
    for records in base.records():
        keys = records.keys.to_list()
        keep = [key not in overlay.rows and not overlay.hides(key) for key in keys]
        yield records if all(keep) else records.take(np.nonzero(np.array(keep, bool))[0])
    live = {key: value for key, value in overlay.rows.items() if value is not None}
    if live:
        yield Records(row_bytes(live.keys()), row_bytes(live.values()), np.zeros(len(live), bool))


def value_of(
    base: Base, changelogs: Sequence[Changelog], delimiter: bytes, key: bytes
) -> bytes | None:
    """Return the value of one key, without looking at the others."""
    overlay = _Overlay(base, delimiter)
    for log in changelogs:
        for change in _typed(log):
            if change.key == key or change.kind == DELETE_RANGE:
                overlay.apply(change)
    return overlay.value(key)
