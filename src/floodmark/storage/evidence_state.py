"""Reads state files in full for `doctor --read-data`: every byte is decoded and checked."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from floodmark.checkpoint.evidence import side_file
from floodmark.checkpoint.layout import StateFile
from floodmark.errors import FloodmarkError, MalformedFile

if TYPE_CHECKING:
    from floodmark.storage.evidence import Gathering
    from floodmark.storage.evidence_partitions import Homes

_ROW_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_AT_ONCE = 64 << 20
_BUCKETS = 1 << 16


def read_state(found: Gathering, share: float) -> None:
    """Decodes state files; `share` below 1 takes that part, the same part each time."""
    from floodmark.storage.evidence_partitions import Homes

    homes = Homes(found)
    chosen = [file for file in found.checkpoint.state_files if _chosen(file.path, share)]
    for files in _portions(chosen):
        contents = found.files.read_many(file.path for file in files)
        for file in files:
            data = contents[file.path]
            if isinstance(data, FloodmarkError):
                found.fail(file.path, data)
            elif file.path not in found.faults:
                _check_spark_checksum(found, file, data)
                _decode(found, file, data, homes)
        _check_side_files(found, files, contents)
        for file in files:
            found.files.contents.pop(file.path, None)
    _check_tables(found, share)
    if share >= 1:
        homes.check_stores()


def _chosen(path: str, share: float) -> bool:
    return share >= 1 or zlib.crc32(path.encode()) % _BUCKETS < share * _BUCKETS


def _portions(files: list[StateFile]) -> Iterator[list[StateFile]]:
    """Some files at a time: enough to keep a network busy, few enough to hold."""
    portion: list[StateFile] = []
    size = 0
    for file in files:
        portion.append(file)
        size += file.size
        if size > _AT_ONCE or len(portion) >= 1024:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _decode(found: Gathering, file: StateFile, data: bytes, homes: Homes) -> None:
    from floodmark.state.hdfs import file_records
    from floodmark.state.rocksdb import parse_changelog

    checked = found.checkpoint.conf.get(_ROW_CHECKSUMS) == "true"
    if file.kind == "zip":
        found.snapshot(file.path, data)
        return
    try:
        if file.kind == "changelog":
            parse_changelog(data, checked)
        else:
            for at, records in enumerate(file_records("", data, file.kind == "delta", checked)):
                if at == 0 and len(records):
                    homes.check_file(file, records)
    except FloodmarkError as error:
        found.fail(file.path, type(error)(error.what.removeprefix(": "), error.why, error.do))


def _check_spark_checksum(found: Gathering, file: StateFile, data: bytes) -> None:
    from floodmark.state.crc32c import crc_of

    path = f"{file.path}.crc"
    if path not in found.sizes or file.path in found.checksums:
        return
    checksum = found.files.read_many([path])[path]
    if isinstance(checksum, FloodmarkError):
        found.fail(path, checksum)
        return
    value = found.spark_checksum(path, checksum)
    if value is not None and value & 0xFFFFFFFF != crc_of(data):
        found.checksums[file.path] = "its bytes have another CRC-32C than Spark wrote down"


def _check_side_files(
    found: Gathering, files: list[StateFile], contents: dict[str, bytes | FloodmarkError]
) -> None:
    sides = {side: file.path for file in files if (side := side_file(file.path)) in found.sizes}
    for side, data in found.files.read_many(sides).items():
        main = contents[sides[side]]
        if isinstance(data, bytes) and isinstance(main, bytes):
            found.check_side(sides[side], main, data)
        found.files.contents.pop(side, None)


def _check_tables(found: Gathering, share: float) -> None:
    """RocksDB reads the snapshots that the next start opens, to their last block."""
    for need in found.needs:
        base = need.files[0] if need.files else None
        if base is None or base.path not in found.tables or not _chosen(base.path, share):
            continue
        _open_snapshot(found, need.folder, base.path)
        if base.path in found.faults:
            # Snapshots share tables: whether one can go back to an earlier one has to be tried.
            for path in found.tables:
                if path.rpartition("/")[0] == need.folder and path != base.path:
                    _open_snapshot(found, need.folder, path)
        _check_table_sides(found, [table.path for table in found.tables[base.path]])


def _open_snapshot(found: Gathering, folder: str, path: str) -> None:
    from floodmark.state.rocksdb import read_snapshot
    from floodmark.storage.state_rocksdb import opened

    tables = found.tables[path]
    if any(found.sizes.get(table.path) != table.size for table in tables):
        return  # a rule of its own says so
    try:
        snapshot = read_snapshot(found.files.read(path))
        with opened(found.files, folder, snapshot, b",") as database:
            for _ in database.records():
                pass
    except MalformedFile as error:
        found.fail(path, error)
    except FloodmarkError:
        return  # gone since it was listed


def _check_table_sides(found: Gathering, paths: list[str]) -> None:
    sides = {side: path for path in paths if (side := side_file(path)) in found.sizes}
    contents = found.files.read_many([*sides, *sides.values()])
    for side, path in sides.items():
        data, main = contents[side], contents[path]
        if isinstance(data, bytes) and isinstance(main, bytes):
            found.check_side(path, main, data)
        found.files.contents.pop(side, None)
        found.files.contents.pop(path, None)
