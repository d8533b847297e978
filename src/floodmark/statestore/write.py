"""Writes one store of one partition: the files that Spark loads as a version.

Rows come in pieces and go to a file on this machine's disk first, so memory holds a piece and never
the state. The same rows give the same names: an interrupted write is simply repeated.
"""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import CannotRead
from floodmark.state.files.compression import compressed
from floodmark.state.files.records import CLOSING, Records, render_rows
from floodmark.state.rows.encoding import with_checksums
from floodmark.state.rows.layout import Layout
from floodmark.state.rows.rowbytes import gather
from floodmark.state.shapes.tally import Tally, tally
from floodmark.storage.files import WritableFiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HDFS, ROCKSDB = "hdfs", "rocksdb"
_TABLE_BYTES = 16 << 20
"""Rows of so many bytes make a table. RocksDB keeps them in memory until then, and no others: the
next rows wait until the table is on disk. So memory does not grow with the state."""
_A_ROW = 40
"""Bytes that RocksDB keeps in memory for a row, besides its key and its value."""
_WRITE_BUFFER = 2 * _TABLE_BYTES
"""Here RocksDB would begin a table by itself."""
_OPEN_TABLES = 16
_CACHE_BYTES = 1 << 20
"""RocksDB would keep open each table that it has written, with an index and a filter in memory."""
_TABLE_FORMAT = 5
"""A format that Spark 3.5's RocksDB can read; newer versions write 6 by default."""
_BLOOM_BITS = 10.0
_PLAIN = Layout(None, None)


@dataclass(frozen=True)
class StoreFormat:
    """The format of a store's files."""

    provider: str
    codec: str = "lz4"
    """HDFS: the value of `spark.sql.streaming.stateStore.compression.codec`."""
    row_checksums: bool = False
    """HDFS: whether to write checksums. RocksDB's values already have theirs."""
    families: Mapping[str, int] = field(default_factory=dict)
    """RocksDB: column family → the number that its keys begin with."""
    internal: frozenset[str] = frozenset()
    zip_version: int = 1
    """RocksDB: 2 for Spark 4.0 with unique ids, which reads only 2; all others read 1."""


@dataclass(frozen=True)
class WrittenStore:
    files: tuple[FileInfo, ...]
    tally: Tally


def write_store(
    files: WritableFiles,
    folder: str,
    version: int,
    rows: Iterable[Records],
    style: StoreFormat,
    unique_id: str | None = None,
) -> WrittenStore:
    """Write `folder/V.snapshot`, or `V.zip` and its tables, from rows as the store keeps them.

    No row is removed and no key comes twice. `unique_id` is the id in the commit log, if the state
    has unique ids.
    """
    with tempfile.TemporaryDirectory(prefix="floodmark-state-") as place:
        if style.provider == HDFS:
            return _write_hdfs(files, f"{folder}/{version}.snapshot", rows, style, Path(place))
        return _write_rocksdb(files, folder, (version, unique_id), rows, style, Path(place))


class _Counted:
    """Tallies rows while they pass."""

    def __init__(self, rows: Iterable[Records]) -> None:
        self._rows = rows
        self.tally = Tally()

    def __iter__(self) -> Iterator[Records]:
        for records in self._rows:
            self.tally += tally(records)
            yield records


def _write_hdfs(
    files: WritableFiles, path: str, rows: Iterable[Records], style: StoreFormat, place: Path
) -> WrittenStore:
    counted = _Counted(rows)

    def content() -> Iterator[bytes]:
        for records in counted:
            values = records.values
            if style.row_checksums:
                values = with_checksums(_PLAIN, records.keys, values)
            yield render_rows(records.keys, values, closing=False)
        yield CLOSING

    local = place / "snapshot"
    with local.open("wb") as out:
        _write_all(out, compressed(content(), style.codec))
    files.put(RelativePath(path), str(local))
    return WrittenStore((FileInfo(path, local.stat().st_size),), counted.tally)


def _write_all(out: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        out.write(piece)


def _write_rocksdb(
    files: WritableFiles,
    folder: str,
    at: tuple[int, str | None],
    rows: Iterable[Records],
    style: StoreFormat,
    place: Path,
) -> WrittenStore:
    from floodmark.state.files.rocksdb import RocksSnapshot, SnapshotFile
    from floodmark.state.files.rocksdb_write import render_snapshot

    version, unique_id = at
    counted = _Counted(rows)
    database = place / "db"
    internal_rows = _fill(database, counted, style)
    found: list[FileInfo] = []
    tables = []
    for table in sorted(database.glob("*.sst")):
        # The name is the same each time this store is written.
        unique = uuid.uuid5(uuid.NAMESPACE_URL, f"{folder} {version} {unique_id} {table.name}")
        stored, size = f"{table.stem}-{unique}.sst", table.stat().st_size
        files.put(RelativePath(f"{folder}/SSTs/{stored}"), str(table))
        found.append(FileInfo(f"{folder}/SSTs/{stored}", size))
        tables.append(SnapshotFile(table.name, stored, size))
    snapshot = RocksSnapshot(
        tuple(tables),
        (),
        counted.tally.rows - internal_rows,
        dict(style.families),
        _described(database),
        style.internal,
        style.zip_version,
    )
    data = render_snapshot(snapshot, internal_rows)
    # The zip comes last: a version exists only when its tables do.
    path = f"{folder}/{version}{f'_{unique_id}' if unique_id else ''}.zip"
    files.write(RelativePath(path), data)
    return WrittenStore((*found, FileInfo(path, len(data))), counted.tally)


def _described(database: Path) -> dict[str, bytes]:
    """Return the content of a snapshot's zip: the newest files, because opening leaves older
    ones.
    """
    manifest = (database / "CURRENT").read_text().strip()
    options = max(database.glob("OPTIONS-*"), key=lambda path: path.name)
    names = ["CURRENT", manifest, options.name]
    return {name: (database / name).read_bytes() for name in names}


def _fill(database: Path, rows: Iterable[Records], style: StoreFormat) -> int:
    """Put the rows into a new database; return how many are in internal families."""
    from rocksdict import WriteBatch

    internal = [style.families[name] for name in style.internal if name in style.families]
    count = held = 0
    with _new_database(database) as opened:
        for records in rows:
            batch = WriteBatch(raw_mode=True)
            pairs = zip(records.keys.to_list(), records.values.to_list(), strict=True)
            for key, value in pairs:
                batch.put(key, value)
            opened.write(batch)
            held += records.keys.size + records.values.size + _A_ROW * len(records)
            if held >= _TABLE_BYTES:
                opened.flush()
                held = 0
            if internal:
                count += int(_is_one_of(records, internal).sum())
    return count


def _is_one_of(records: Records, families: list[int]) -> NDArray[np.bool_]:
    import numpy as np

    return np.isin(gather(records.keys.data, records.keys.starts, "<i2"), families)


@contextlib.contextmanager
def _new_database(place: Path) -> Iterator[Any]:
    import rocksdict

    tables = rocksdict.BlockBasedOptions()
    tables.set_format_version(_TABLE_FORMAT)
    tables.set_bloom_filter(_BLOOM_BITS, False)
    tables.set_block_cache(rocksdict.Cache(_CACHE_BYTES))
    tables.set_cache_index_and_filter_blocks(True)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(tables)
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    options.set_write_buffer_size(_WRITE_BUFFER)
    options.set_disable_auto_compactions(True)
    options.set_max_open_files(_OPEN_TABLES)
    options.set_manifest_preallocation_size(64 << 10)
    writing = rocksdict.WriteOptions()
    writing.disable_wal = True
    try:
        database = rocksdict.Rdict(str(place), options)
        database.set_write_options(writing)
    except Exception as error:
        raise CannotRead(f"RocksDB cannot make a database in {place}", str(error)) from None
    try:
        yield database
        database.flush()
    finally:
        database.close()
