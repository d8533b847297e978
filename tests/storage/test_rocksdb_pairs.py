"""RocksDB's pairs, read in this process and in others beside it."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floodmark.errors import CannotRead, MalformedFile
from floodmark.statestore import rocksdb_files as state_rocksdb
from floodmark.statestore.open import open_state
from floodmark.statestore.rocksdb_pairs import _HEADER, _parsed, open_database, pairs_of
from floodmark.statestore.view import StateView
from floodmark.storage.files import open_files
from floodmark.storage.load import load

GOLDEN = Path(__file__).parents[1] / "golden"
WITH_TABLES = sorted(
    path for path in GOLDEN.glob("*/*/checkpoint") if any(path.glob("state/**/*.sst"))
)
SALES = GOLDEN / "4.2" / "sales-rocksdb" / "checkpoint"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that was started; a process is worth any table here."""
    processes: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(state_rocksdb, "_WORTH_A_PROCESS", 0)
    return processes


def _view(path: Path) -> StateView:
    files = open_files(str(path))
    return open_state(files, load(files))


def _in_this_process(view: StateView) -> pa.Table:
    rows = [batch for part in view.partitions for batch in view.partition_batches(part)]
    return pa.Table.from_batches(rows, view.arrow_schema)


@pytest.mark.parametrize(
    "path", WITH_TABLES, ids=["-".join(path.parts[-3:-1]) for path in WITH_TABLES]
)
def test_side_by_side_is_the_same(path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    view = _view(path)
    alone = _in_this_process(view)
    assert not started
    beside = view.to_arrow()
    order = [("partition", "ascending")]
    assert beside.sort_by(order).equals(alone.sort_by(order))
    assert (not started) is (alone.num_rows == 0 or len(view.partitions) == 1)


def test_what_is_not_read_to_its_end_is_ended(started: list[subprocess.Popen[bytes]]) -> None:
    rows = _view(SALES).batches()
    assert next(iter(rows)).num_rows
    assert [process.poll() for process in started] == [None] * len(started) != []
    rows.close()  # type: ignore[attr-defined]
    assert None not in [process.poll() for process in started]


def test_without_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **kwargs: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    view = _view(SALES)
    alone = _in_this_process(view).num_rows
    monkeypatch.setattr(subprocess, "Popen", refused)
    monkeypatch.setattr(state_rocksdb, "_WORTH_A_PROCESS", 0)
    assert view.to_arrow().num_rows == alone > 0


def test_a_damaged_table(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    place = Path(shutil.copytree(SALES, tmp_path / "ck"))
    for table in place.rglob("*.sst"):
        content = bytearray(table.read_bytes())
        content[10] ^= 0xFF
        table.write_bytes(content)
    with pytest.raises(MalformedFile, match=r"RocksDB cannot read the snapshot: .*orrupt"):
        _view(place).to_arrow()
    assert started


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


def test_a_process_that_was_ended() -> None:
    with pytest.raises(CannotRead, match="ended before its time"):
        list(_parsed(io.BytesIO(_HEADER.pack(2, 100) + bytes(8) + b"half")))
