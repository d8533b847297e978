"""RocksDB's pairs, read by processes of their own."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floodmark import api
from floodmark.errors import CannotRead, MalformedFile, OverLimit
from floodmark.statestore import rocksdb_pairs, rocksdb_readers
from floodmark.statestore.open import open_state
from floodmark.statestore.rocksdb_pairs import open_database, pairs_of
from floodmark.statestore.view import StateView
from floodmark.storage.files import open_files
from floodmark.storage.load import load
from forged_tables import forged

GOLDEN = Path(__file__).parents[1] / "golden"
WITH_TABLES = sorted(
    path for path in GOLDEN.glob("*/*/checkpoint") if any(path.glob("state/**/*.sst"))
)
SALES = GOLDEN / "4.2" / "sales-rocksdb" / "checkpoint"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Every process that was started, and none from before."""
    processes: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            processes.append(self)

    rocksdb_readers._readers().end()
    monkeypatch.setattr(subprocess, "Popen", Noted)
    yield processes
    rocksdb_readers._readers().end()
    assert None not in [process.poll() for process in processes]


def _view(path: Path) -> StateView:
    files = open_files(str(path))
    return open_state(files, load(files))


def _in_order(view: StateView) -> pa.Table:
    rows = [batch for part in view.partitions for batch in view.partition_batches(part)]
    return pa.Table.from_batches(rows, view.arrow_schema)


@pytest.mark.parametrize(
    "path", WITH_TABLES, ids=["-".join(path.parts[-3:-1]) for path in WITH_TABLES]
)
def test_side_by_side_is_the_same(path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    view = _view(path)
    alone = _in_order(view)
    assert len(started) <= 1
    beside = view.to_arrow()
    order = [("partition", "ascending")]
    assert beside.sort_by(order).equals(alone.sort_by(order))
    assert len(started) <= max(2, os.cpu_count() or 1)


def test_a_reader_with_more_to_say_is_ended(started: list[subprocess.Popen[bytes]]) -> None:
    rows = _view(SALES).partition_batches(0)
    assert next(iter(rows)).num_rows
    rows.close()  # type: ignore[attr-defined]
    assert _in_order(_view(SALES)).num_rows


def test_without_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **kwargs: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    rocksdb_readers._readers().end()
    view = _view(SALES)
    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(CannotRead, match="the system does not start one: Resource temporarily"):
        view.to_arrow()


def test_a_damaged_table(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    place = Path(shutil.copytree(SALES, tmp_path / "ck"))
    for table in place.rglob("*.sst"):
        content = bytearray(table.read_bytes())
        content[10] ^= 0xFF
        table.write_bytes(content)
    with pytest.raises(MalformedFile, match=r"RocksDB cannot read the snapshot: .*orrupt"):
        _view(place).to_arrow()
    assert len(started) == 1
    assert _view(SALES).to_arrow().num_rows  # the same reader goes on


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_pairs_do_not_end_at_damage(tmp_path: Path, share: float) -> None:
    import rocksdict

    place = str(tmp_path / "db")
    made = rocksdict.Rdict(place, rocksdict.Options(raw_mode=True))
    for number in range(20_000):
        made[b"%08d" % number] = b"%d" % number * 3
    made.flush()
    made.close()
    whole = sum(len(lengths) for lengths, _ in pairs_of(open_database(place)))
    assert whole == 40_000
    (table,) = Path(place).glob("*.sst")
    content = bytearray(table.read_bytes())
    content[int(len(content) * share)] ^= 0x01
    table.write_bytes(content)
    with pytest.raises(Exception, match="Corruption"):
        list(pairs_of(open_database(place)))


def _code_that(does: str) -> str:
    return f"import sys, os, time, signal; sys.stdin.buffer.read(20); {does}"


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("os.abort()", r"state/0/0: RocksDB ended the process that read the snapshot \(SIGABRT\)"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"the snapshot \(SIGSEGV\)"),
        ("sys.exit(3)", "ended with status 3"),
        ("time.sleep(60)", "RocksDB has not answered for 1 seconds"),
    ],
)
def test_a_forged_snapshot_ends_its_reader_alone(
    does: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What RocksDB does with right checksums and wrong contents, done by another process."""
    real = subprocess.Popen

    def other(command: list[str], **kwargs: Any) -> subprocess.Popen[bytes]:
        return real([command[0], "-c", _code_that(does)], **kwargs)

    rocksdb_readers._readers().end()
    monkeypatch.setattr(subprocess, "Popen", other)
    if "sleep" in does:
        monkeypatch.setenv("FLOODMARK_LIMITS", "seconds=1")
    with pytest.raises((MalformedFile, OverLimit), match=said):
        _view(SALES).to_arrow()
    monkeypatch.setattr(subprocess, "Popen", real)
    monkeypatch.delenv("FLOODMARK_LIMITS", raising=False)
    assert _view(SALES).to_arrow().num_rows


def test_a_snapshot_that_takes_too_long_is_neither_sound_nor_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine doctor and repair must not take it for damage."""
    real = subprocess.Popen

    def sleeping(command: list[str], **kwargs: Any) -> subprocess.Popen[bytes]:
        return real([command[0], "-c", "import time; time.sleep(60)"], **kwargs)

    rocksdb_readers._readers().end()
    monkeypatch.setattr(subprocess, "Popen", sleeping)
    monkeypatch.setenv("FLOODMARK_LIMITS", "seconds=1")
    with pytest.raises(OverLimit, match="has not answered for 1 seconds"):
        api.doctor(str(SALES), read_data=True)


def _open_files() -> Iterator[str]:
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing itself
            yield str(one.readlink())


def test_tables_are_not_all_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds an index and a filter in memory, and a large state has hundreds."""
    import rocksdict

    asked, tables = 30, 60
    monkeypatch.setattr(rocksdb_pairs, "_OPEN_TABLES", asked)
    place = str(tmp_path / "db")
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_disable_auto_compactions(True)
    made = rocksdict.Rdict(place, options)
    for number in range(tables):
        made[b"%03d" % number] = b"value"
        made.flush()
    made.close()
    assert len(list(Path(place).glob("*.sst"))) == tables
    database = open_database(place)
    try:
        assert database.get(b"%03d" % (tables // 2)) == b"value"
        opened = list(_open_files())
        assert 0 < sum(path.startswith(place) and path.endswith(".sst") for path in opened) <= asked
    finally:
        database.close()


def test_a_reader_that_the_system_ended(started: list[subprocess.Popen[bytes]]) -> None:
    rocksdb_readers.start_one()
    started[0].kill()
    with pytest.raises(CannotRead, match="ended too early"):
        _view(SALES).to_arrow()


@pytest.mark.parametrize("seed", range(60))
def test_tables_forged_with_right_checksums(tmp_path: Path, seed: int) -> None:
    """RocksDB believes what a checksum says: its process may end, this one does not."""
    drawn = random.Random(seed)
    place = Path(shutil.copytree(SALES, tmp_path / "ck"))
    for table in place.rglob("*.sst"):
        table.write_bytes(forged(table.read_bytes(), drawn))
    with contextlib.suppress(MalformedFile):
        _view(place).to_arrow()
    assert _view(SALES).to_arrow().num_rows == 5
