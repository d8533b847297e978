"""Reads state files in full for `doctor --read-data`: every byte is looked at and vouched for.

By Hadoop's checksums beside the file or Spark's own where there are some, else by the checksums
inside it, else by decoding it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from floodmark.checkpoint.conf_keys import ROW_CHECKSUMS
from floodmark.checkpoint.evidence import side_file
from floodmark.checkpoint.layout import StateFile
from floodmark.errors import FloodmarkError, MalformedFile, OverLimit
from floodmark.progress import counted, tell

if TYPE_CHECKING:
    from floodmark.diagnosis.gather import Gathering
    from floodmark.diagnosis.large_files import LargeFiles
    from floodmark.diagnosis.partitions import Homes
    from floodmark.state.files.records import Records
    from floodmark.state.files.rocksdb import RocksSnapshot

_AT_ONCE = 64 << 20
_BUCKETS = 1 << 16
_Contents = dict[str, "bytes | FloodmarkError"]


def read_state(found: Gathering, share: float) -> None:
    """Reads state files; `share` below 1 takes that part, the same part each time."""
    from floodmark.diagnosis.large_files import LargeFiles
    from floodmark.diagnosis.partitions import Homes

    row_checksums = found.checkpoint.conf.get(ROW_CHECKSUMS) == "true"
    homes = Homes(found, row_checksums)
    chosen = [file for file in found.checkpoint.state_files if _chosen(file.path, share)]
    large = LargeFiles(found)
    done = 0
    for files in _portions(chosen):
        tell("state files", done, len(chosen))
        done += len(files)
        files = [file for file in files if not _passes(large, file, row_checksums, homes)]
        contents = found.files.read_many(_with_checksums(found, files))
        for file in files:
            data = contents[file.path]
            if isinstance(data, FloodmarkError):
                found.fail(file.path, data)
                continue
            sound = file.path not in found.faults
            vouched = _spark_agrees(found, file, data, contents) if sound else False
            vouched = _hadoop_agrees(found, file.path, data, contents) or vouched
            if sound:
                _look(found, file, data, vouched, row_checksums, homes)
        homes.compare()
        for file in files:
            # Spark's own checksums stay: they have side files, too, which are looked at later.
            found.files.contents.pop(file.path, None)
            found.files.contents.pop(side_file(file.path), None)
    _check_tables(found, share, homes, large)


def _passes(large: LargeFiles, file: StateFile, row_checksums: bool, homes: Homes) -> bool:
    """True for a large file that was found sound piece by piece."""
    content = None if row_checksums else large.content(file)
    if content is not None:
        homes.sample(file, content.head)
    return content is not None


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


def _with_checksums(found: Gathering, files: list[StateFile]) -> Iterator[str]:
    for file in files:
        yield file.path
        for beside in (side_file(file.path), f"{file.path}.crc"):
            if beside in found.sizes:
                yield beside


def _look(
    found: Gathering,
    file: StateFile,
    data: bytes,
    vouched: bool,
    row_checksums: bool,
    homes: Homes,
) -> None:
    from floodmark.state.files.soundness import content_of

    if file.kind == "zip":
        found.snapshot(file.path, data)
        return
    try:
        content = content_of(data, file.kind, vouched, row_checksums)
        homes.sample(file, content.head)
    except FloodmarkError as error:
        error.what = error.what.removeprefix(": ")  # the finding names the file itself
        found.fail(file.path, error)


def _spark_agrees(found: Gathering, file: StateFile, data: bytes, contents: _Contents) -> bool:
    """False too where Spark has left no checksum."""
    path = f"{file.path}.crc"
    checksum = contents.get(path)
    if checksum is None or file.path in found.checksums:
        return False
    if isinstance(checksum, FloodmarkError):
        found.fail(path, checksum)
        return False
    from floodmark.state.files.crc32c import crc_of

    value = found.spark_checksum(path, checksum)
    if value is None:
        return False
    if value & 0xFFFFFFFF != crc_of(data):
        found.checksums[file.path] = "its bytes have another CRC-32C than Spark wrote down"
        return False
    return True


def _hadoop_agrees(found: Gathering, path: str, data: bytes, contents: _Contents) -> bool:
    side = contents.get(side_file(path))
    return isinstance(side, bytes) and found.check_side(path, data, side)


def _check_tables(found: Gathering, share: float, homes: Homes, large: LargeFiles) -> None:
    """The snapshots that the next start opens, to their last block."""
    for need in counted(found.needs, "partitions of state"):
        base = need.files[0] if need.files else None
        if base is None or not _chosen(base.path, share):
            continue
        if base.path not in found.tables:
            homes.compare_store(need, None, None)
            continue
        vouched = _tables_agree(found, base.path, large)
        if not vouched or homes.knows(need.operator):
            to_the_end = not vouched and not _blocks_agree(found, base.path, large)
            opened = _open_snapshot(found, need.folder, base.path, to_the_end)
            if opened is not None:
                homes.compare_store(need, *opened)
        if base.path in found.faults:
            # Snapshots share tables: whether one can go back to an earlier one has to be tried.
            for path in found.tables:
                if path.rpartition("/")[0] == need.folder and path != base.path:
                    _open_snapshot(found, need.folder, path, to_the_end=True)


def _tables_agree(found: Gathering, snapshot: str, large: LargeFiles) -> bool:
    """True where every table has Hadoop's checksums and fits them. The zip has its own."""
    agree = True
    for table in found.tables[snapshot]:
        side = side_file(table.path)
        if side not in found.sizes or table.path not in found.sizes:
            agree = False
            continue
        if large.agrees(table.path):
            continue
        try:
            data, sums = found.files.read(table.path), found.files.read(side)
        except FloodmarkError:
            agree = False
            continue
        agree = found.check_side(table.path, data, sums) and agree
    return agree


def _blocks_agree(found: Gathering, snapshot: str, large: LargeFiles) -> bool:
    """True where every block of every table fits its checksum. Logs are RocksDB's to read."""
    return all(
        table.path.endswith(".sst") and large.is_sound_table(table.path)
        for table in found.tables[snapshot]
    )


def _open_snapshot(
    found: Gathering, folder: str, path: str, to_the_end: bool
) -> tuple[RocksSnapshot, Records] | None:
    """The snapshot and its first pairs; None where RocksDB cannot read it."""
    from floodmark.state.files.rocksdb import read_snapshot
    from floodmark.statestore.rocksdb_files import read_through

    if any(found.sizes.get(table.path) != table.size for table in found.tables[path]):
        return None  # a rule of its own says so
    try:
        snapshot = read_snapshot(found.files.read(path))
        return snapshot, read_through(found.files, folder, snapshot, to_the_end)
    except MalformedFile as error:
        found.fail(path, error)
    except OverLimit:
        raise  # neither sound nor damaged: nobody has seen
    except FloodmarkError:
        pass  # gone since it was listed
    return None
