"""Reads state files in full for `doctor --read-data`, and checks every byte.

It uses Hadoop's checksums beside the file or Spark's own. Without them it uses the checksums inside
the file, or decodes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from floodmark.checkpoint.conf_keys import ROW_CHECKSUMS
from floodmark.checkpoint.layout import StateFile, checksum_file, side_file
from floodmark.diagnosis.store import gather_checksum, gather_snapshot
from floodmark.errors import FloodmarkError, MalformedFile, OverLimit
from floodmark.progress import counted, tell

if TYPE_CHECKING:
    from floodmark.diagnosis.facts import Gathering
    from floodmark.diagnosis.large_files import LargeFiles
    from floodmark.diagnosis.misplaced_keys import Homes
    from floodmark.state.files.records import Records
    from floodmark.state.files.rocksdb import RocksSnapshot

_AT_ONCE = 64 << 20
_BUCKETS = 1 << 16
_Contents = dict[str, "bytes | FloodmarkError"]


def read_state(found: Gathering, share: float) -> None:
    """Read state files; `share` below 1 reads that part, the same part each time."""
    from floodmark.diagnosis.large_files import LargeFiles
    from floodmark.diagnosis.misplaced_keys import Homes

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
            # Spark's own checksums stay: they have side files too, which are checked later.
            found.files.contents.pop(file.path, None)
            found.files.contents.pop(side_file(file.path), None)
    _check_tables(found, share, homes, large)


def _passes(large: LargeFiles, file: StateFile, row_checksums: bool, homes: Homes) -> bool:
    """Whether a large file was found sound piece by piece."""
    content = None if row_checksums else large.content(file)
    if content is not None:
        homes.sample(file, content.head)
    return content is not None


def _chosen(path: str, share: float) -> bool:
    return share >= 1 or zlib.crc32(path.encode()) % _BUCKETS < share * _BUCKETS


def _portions(files: list[StateFile]) -> Iterator[list[StateFile]]:
    """Yield some files at a time: enough to keep a network busy, few enough for the memory."""
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
        for beside in (side_file(file.path), checksum_file(file.path)):
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
        gather_snapshot(found, file.path, data)
        return
    try:
        content = content_of(data, file.kind, vouched, row_checksums)
        homes.sample(file, content.head)
    except FloodmarkError as error:
        error.what = error.what.removeprefix(": ")  # the finding names the file itself
        found.fail(file.path, error)


def _spark_agrees(found: Gathering, file: StateFile, data: bytes, contents: _Contents) -> bool:
    """Whether Spark's checksum exists and matches."""
    path = checksum_file(file.path)
    checksum = contents.get(path)
    if checksum is None or file.path in found.checksums:
        return False
    if isinstance(checksum, FloodmarkError):
        found.fail(path, checksum)
        return False
    from floodmark.state.files.crc32c import crc_of

    value = gather_checksum(found, path, checksum)
    if value is None:
        return False
    if value & 0xFFFFFFFF != crc_of(data):
        found.checksums[file.path] = "its bytes do not match the CRC-32C that Spark wrote"
        return False
    return True


def _hadoop_agrees(found: Gathering, path: str, data: bytes, contents: _Contents) -> bool:
    side = contents.get(side_file(path))
    return isinstance(side, bytes) and found.check_side(path, data, side)


def _check_tables(found: Gathering, share: float, homes: Homes, large: LargeFiles) -> None:
    """Check the snapshots that the next start opens, to their last block."""
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
            # Snapshots share tables, so each earlier one must be tried before going back to it.
            for path in found.tables:
                if path.rpartition("/")[0] == need.folder and path != base.path:
                    _open_snapshot(found, need.folder, path, to_the_end=True)


def _tables_agree(found: Gathering, snapshot: str, large: LargeFiles) -> bool:
    """Whether every table has Hadoop's checksums and matches them. The zip has its own."""
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
    """Whether every block of every table matches its checksum. RocksDB must read the logs."""
    return all(
        table.path.endswith(".sst") and large.is_sound_table(table.path)
        for table in found.tables[snapshot]
    )


def _open_snapshot(
    found: Gathering, folder: str, path: str, to_the_end: bool
) -> tuple[RocksSnapshot, Records] | None:
    """Return the snapshot and its first pairs; None if RocksDB cannot read it."""
    from floodmark.state.files.rocksdb import read_snapshot
    from floodmark.statestore.rocksdb_files import read_through

    if any(found.sizes.get(table.path) != table.size for table in found.tables[path]):
        return None  # another rule reports it
    try:
        snapshot = read_snapshot(found.files.read(path))
        return snapshot, read_through(found.files, folder, snapshot, to_the_end)
    except MalformedFile as error:
        found.fail(path, error)
    except OverLimit:
        raise  # it is not known whether the file is sound
    except FloodmarkError:
        pass  # the file was removed after the listing
    return None
