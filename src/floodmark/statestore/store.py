"""Reads one store of one operator at one version, a partition at a time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from floodmark.checkpoint.layout import StateFile, checksum_file, store_folder
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.state_chain import Steps, StoreChain, chain_of
from floodmark.errors import FloodmarkError, MalformedFile
from floodmark.state.files.hdfs import StateSource, hdfs_source, live_records
from floodmark.state.files.records import Records
from floodmark.state.rows.rowbytes import gather
from floodmark.storage.files import Files

if TYPE_CHECKING:  # states in HDFS files do not need RocksDB
    from floodmark.state.files.rocksdb import Base, Changelog, RocksSnapshot

_RESTORE = "Restore it from a backup; `floodmark doctor CP --read-data` finds other damage."


@dataclass(frozen=True)
class StoreAt:
    """The location of a store's version, and the settings that its files need."""

    files: Files
    operator: int
    store: str
    version: int
    provider: str
    listed: Mapping[int, tuple[StateFile, ...]] = field(repr=False)
    """The store's files by partition."""
    unique_ids: Mapping[int, str] = field(default_factory=dict)
    checksums: frozenset[str] = frozenset()
    """The `<file>.crc` that Spark wrote beside state files."""
    row_checksums: bool = False
    delimiter: bytes = b","

    def chain(self, partition: int) -> StoreChain:
        unique = self.unique_ids.get(partition)
        bare = StoreChain(self.operator, partition, self.store, self.version)
        ids = {} if unique is None else {self.version: unique}
        found = chain_of(bare, self.listed.get(partition, ()), ids, self._lineage)
        found.require()
        return found

    def _lineage(self, changelog: StateFile) -> Steps:
        return self._changelog(changelog).lineage

    def read(self, path: str) -> bytes:
        """Return a state file's bytes, checked against Spark's checksum if there is one."""
        data = self.files.read(RelativePath(path))
        if checksum_file(path) in self.checksums:
            _check_file(path, data, self.files.read(RelativePath(checksum_file(path))))
        return data

    def _changelog(self, file: StateFile) -> Changelog:
        from floodmark.state.files.rocksdb import parse_changelog

        with named(file.path):
            return parse_changelog(self.read(file.path), self.row_checksums)

    @contextlib.contextmanager
    def open(self, partition: int) -> Iterator[OpenedPartition]:
        folder = store_folder(self.operator, partition, self.store)
        with named(folder), self._opened(partition, folder) as found:
            yield found

    @contextlib.contextmanager
    def _opened(self, partition: int, folder: str) -> Iterator[OpenedPartition]:
        chain = self.chain(partition)
        if self.provider == "hdfs":
            yield OpenedPartition(self, chain)
            return
        from floodmark.state.files.rocksdb import NOTHING, read_snapshot

        logs = tuple(self._changelog(file) for file in chain.changes)
        if chain.snapshot is None:
            yield OpenedPartition(self, chain, NOTHING, logs)
            return
        with named(chain.snapshot.path):
            snapshot = read_snapshot(self.read(chain.snapshot.path))
        from floodmark.statestore.rocksdb_files import opened

        with opened(self.files, folder, snapshot, self.delimiter) as base:
            yield OpenedPartition(self, chain, base, logs, snapshot)


@dataclass(frozen=True)
class OpenedPartition:
    store: StoreAt
    chain: StoreChain
    base: Base | None = None
    """RocksDB's open snapshot; None if the state is in HDFS files."""
    changelogs: tuple[Changelog, ...] = ()
    snapshot: RocksSnapshot | None = None

    def family_number(self, family: str | None) -> int | None:
        """Return the number of a column family here; -1, which no key has, if it is unknown."""
        if family is None:
            return None
        return self.snapshot.families.get(family, -1) if self.snapshot else -1

    def records(self) -> Iterator[Records]:
        if self.base is not None:
            from floodmark.state.files.rocksdb import replay

            return replay(self.base, self.changelogs, self.store.delimiter)
        return live_records(self._sources())

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, both as the store keeps them."""
        if self.base is not None:
            from floodmark.state.files.rocksdb import value_of

            return value_of(self.base, self.changelogs, self.store.delimiter, key)
        for source in self._sources():
            found = None
            for records in source.records():
                match = _matching(records, key)
                found = match if match is not None else found
            if found is not None:
                return None if bool(found.removed[0]) else found.values[0]
        return None

    def _sources(self) -> list[StateSource]:
        """Return the sources, newest first."""
        found = [self._source(file, is_delta=True) for file in reversed(self.chain.changes)]
        if self.chain.snapshot is not None:
            found.append(self._source(self.chain.snapshot, is_delta=False))
        return found

    def _source(self, file: StateFile, is_delta: bool) -> StateSource:
        return hdfs_source(
            file.path, is_delta, lambda: self.store.read(file.path), self.store.row_checksums
        )


def _matching(records: Records, key: bytes) -> Records | None:
    """Return the last record of a key in a piece."""
    import numpy as np

    keys = records.keys
    rows = np.nonzero(keys.lengths == len(key))[0]
    # Compare from the end, because many keys have the same beginning.
    for at in range(len(key) - len(key) % 8 - 8, -1, -8):
        words = gather(keys.data, keys.starts[rows] + at, "<u8")
        rows = rows[words == int.from_bytes(key[at : at + 8], "little")]
    for row in reversed(rows.tolist()):
        if keys[row] == key:
            return records.take([row])
    return None


@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Put the file's name before an error's words, and add what to do."""
    try:
        yield
    except FloodmarkError as error:
        if isinstance(error, MalformedFile) and not error.do:
            error.do = _RESTORE
        error.name_file(path)
        raise


def _check_file(path: str, data: bytes, note: bytes) -> None:
    try:
        fields = json.loads(note)
        algorithm, value, size = fields["algorithm"], fields["value"], fields["mainFileSize"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise MalformedFile(
            f"{path}.crc: the file is not in the form of Spark's checksums",
            do=_RESTORE,
        ) from None
    if algorithm != "CRC32C" or type(value) is not int:
        return
    from floodmark.state.files.crc32c import crc_of

    if size != len(data) or value & 0xFFFFFFFF != crc_of(data):
        raise MalformedFile(
            f"{path} does not match its checksum",
            "The file was damaged or replaced after Spark wrote it.",
            "Restore it from a backup, or choose a batch that does not need it.",
        )
