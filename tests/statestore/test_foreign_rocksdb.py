"""A RocksDB snapshot that a stranger has made: it is data, and runs nothing, and writes nowhere."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
import rocksdict

from floodmark.cli.main import run

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2" / "sales-rocksdb" / "checkpoint"


def _checkpoint(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "cp")
    return tmp_path / "cp"


def _newest_zip(folder: Path) -> Path:
    return max(folder.glob("state/0/0/*.zip"), key=lambda path: int(path.stem))


def _rezip(path: Path, changed: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in {**entries, **changed}.items():
            archive.writestr(name, content)
    path.write_bytes(out.getvalue())
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


class _Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.mark),)


def test_a_pickle_in_a_snapshot_is_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """rocksdict unpickles values where a file of its own, beside the database, says so."""
    folder, mark, made = _checkpoint(tmp_path), tmp_path / "ran", tmp_path / "made"
    database = rocksdict.Rdict(str(made), rocksdict.Options(raw_mode=False))
    database["key"] = _Evil(mark)
    database.flush()
    database.close()
    tables = sorted(made.glob("*.sst"))
    store = _newest_zip(folder).parent
    for table in tables:
        shutil.copy(table, store / "SSTs" / f"evil-{table.name}")
    fields = {
        "sstFiles": [
            {
                "localFileName": table.name,
                "dfsSstFileName": f"evil-{table.name}",
                "sizeBytes": table.stat().st_size,
            }
            for table in tables
        ],
        "numKeys": 1,
    }
    entries = {
        path.name: path.read_bytes()
        for path in made.iterdir()
        if path.suffix != ".sst" and path.name not in ("LOCK", "LOG")
    }
    assert "rocksdict-config.json" in entries
    path = _newest_zip(folder)
    path.unlink()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        archive.writestr("metadata", b"v1\n" + json.dumps(fields).encode())
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    for verb in (["state"], ["state", "--stats"], ["doctor", "--read-data"]):
        assert run([verb[0], str(folder), *verb[1:]]) in (1, 3), capsys.readouterr().err
        assert not mark.exists(), "the checkpoint's pickle was run"


def test_a_snapshot_does_not_say_where_rocksdb_writes(tmp_path: Path) -> None:
    folder, elsewhere = _checkpoint(tmp_path), tmp_path / "elsewhere"
    path = _newest_zip(folder)
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.startswith("OPTIONS-"))
        options = archive.read(name)
    there = f"[DBOptions]\n  db_log_dir={elsewhere}\n  wal_dir={elsewhere}\n".encode()
    _rezip(path, {name: options.replace(b"[DBOptions]\n", there)})
    assert run(["state", str(folder)]) == 0
    assert not elsewhere.exists()


@pytest.mark.parametrize("local", ["rocksdict-config.json", "OPTIONS-000099", "CURRENT", "x.sst"])
def test_a_table_takes_no_other_files_name(
    local: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _checkpoint(tmp_path)
    path = _newest_zip(folder)
    with zipfile.ZipFile(path) as archive:
        version, text = archive.read("metadata").decode().split("\n", 1)
    fields = json.loads(text)
    fields["sstFiles"][0]["localFileName"] = local
    _rezip(path, {"metadata": f"{version}\n{json.dumps(fields)}".encode()})
    assert run(["state", str(folder)]) == 3
    assert "but RocksDB does not use such names" in capsys.readouterr().err
