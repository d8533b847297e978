"""What is written as a store is read back as the same rows."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.checkpoint.layout import state_files
from floodmark.state.files.compression import CODECS
from floodmark.state.files.records import Records
from floodmark.state.files.rocksdb import read_snapshot
from floodmark.state.rows.rowbytes import row_bytes
from floodmark.state.shapes.tally import Tally, tally
from floodmark.statestore import write
from floodmark.statestore.store import StoreAt
from floodmark.statestore.write import HDFS, ROCKSDB, StoreFormat, write_store
from floodmark.storage.files import Files, open_files

ROW = st.binary(min_size=1, max_size=4).map(lambda data: data * 8)  # whole words
ROWS = st.dictionaries(ROW, ROW, max_size=20)
_NUMBERS = itertools.count()


def _pieces(rows: dict[bytes, bytes], size: int = 7) -> Iterator[Records]:
    import numpy as np

    pairs = list(rows.items())
    for at in range(0, len(pairs), size):
        piece = dict(pairs[at : at + size])
        yield Records(row_bytes(piece), row_bytes(piece.values()), np.zeros(len(piece), bool))


def _read(
    files: Files, version: int, provider: str, unique_id: str | None = None, checksums: bool = False
) -> dict[bytes, bytes]:
    listed = tuple(state_files(files.list().files))
    store = StoreAt(
        files,
        0,
        "default",
        version,
        provider,
        {0: listed},
        {0: unique_id} if unique_id else {},
        row_checksums=checksums,
    )
    with store.open(0) as opened:
        return {
            key: value
            for records in opened.records()
            for key, value in zip(records.keys.to_list(), records.values.to_list(), strict=True)
        }


@pytest.fixture(params=["local", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "local":
        return open_files(str(tmp_path))
    return open_files(f"memory://state-write-{next(_NUMBERS)}")


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=15)
@given(rows=ROWS)
def test_an_hdfs_snapshot(codec: str, rows: dict[bytes, bytes]) -> None:
    files = open_files(f"memory://state-write-{next(_NUMBERS)}")
    written = write_store(files, "state/0/0", 9, _pieces(rows), StoreFormat(HDFS, codec))
    assert _read(files, 9, HDFS) == rows
    assert [file.path for file in written.files] == ["state/0/0/9.snapshot"]
    assert written.tally == sum((tally(piece) for piece in _pieces(rows, 3)), Tally())


def test_row_checksums_of_hdfs_are_written(files: Files) -> None:
    rows = {b"k" * 8: b"v" * 16, b"l" * 8: b"w" * 24}
    write_store(files, "state/0/0", 2, _pieces(rows), StoreFormat(HDFS, row_checksums=True))
    assert _read(files, 2, HDFS, checksums=True) == rows


@pytest.mark.parametrize("unique_id", [None, "0e6e971c-a4f9-4df6-8f28-ce813a9f3b2c"])
def test_a_rocksdb_snapshot(files: Files, unique_id: str | None) -> None:
    rows = {b"\0key %d" % at: b"\0value %d" % at for at in range(1000)}
    written = write_store(
        files, "state/0/0", 4, _pieces(rows, 300), StoreFormat(ROCKSDB), unique_id
    )
    assert _read(files, 4, ROCKSDB, unique_id) == rows
    sizes = {file.path: file.size for file in files.list().files}
    assert {file.path: file.size for file in written.files} == sizes
    # Again, as after a crash: the same files and no others.
    write_store(files, "state/0/0", 4, _pieces(rows, 200), StoreFormat(ROCKSDB), unique_id)
    assert {file.path for file in files.list().files} == set(sizes)


def test_a_rocksdb_snapshot_without_rows(files: Files) -> None:
    written = write_store(files, "state/0/0", 1, iter(()), StoreFormat(ROCKSDB))
    assert written.tally.rows == 0
    assert _read(files, 1, ROCKSDB) == {}
    assert read_snapshot(files.read("state/0/0/1.zip")).num_keys == 0


def test_column_families_are_numbered_and_counted(files: Files) -> None:
    rows = {b"\1\0a": b"1", b"\2\0b": b"2", b"\2\0c": b"3"}
    style = StoreFormat(ROCKSDB, families={"total": 1, "$count": 2}, internal=frozenset({"$count"}))
    write_store(files, "state/0/0", 3, _pieces(rows), style)
    snapshot = read_snapshot(files.read("state/0/0/3.zip"))
    assert snapshot.families == {"total": 1, "$count": 2}
    assert snapshot.internal == {"$count"}
    assert snapshot.num_keys == 1
    assert _read(files, 3, ROCKSDB) == rows


def test_a_table_begins_when_the_one_before_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocksDB then never holds rows of two tables, and the size of the state does not matter."""
    count = 40
    rows = {f"k{at:07}".encode(): bytes(56) for at in range(count * 100)}
    a_piece = 100 * (8 + 56 + write._A_ROW)
    monkeypatch.setattr(write, "_TABLE_BYTES", 4 * a_piece)
    here = tmp_path / "temporary"
    here.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    files = open_files(str(tmp_path / "checkpoint"))
    tables = []

    def watched() -> Iterator[Records]:
        for records in _pieces(rows, 100):
            yield records
            tables.append(len(list(here.glob("floodmark-state-*/db/*.sst"))))

    written = write_store(files, "state/0/0", 3, watched(), StoreFormat(ROCKSDB))
    assert tables == [piece // 4 for piece in range(1, count + 1)]
    assert len([file for file in written.files if file.path.endswith(".sst")]) == count // 4
    assert _read(files, 3, ROCKSDB) == rows
