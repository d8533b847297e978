"""Everything that is read has a limit: what a stranger's file can cost, in memory and in time.

Each command runs in a process of its own with 1 GiB of memory; a limit must have been met, not
the end of the memory.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import samples
from floodmark.cli.main import run
from floodmark.errors import OverLimit, WrongUse
from floodmark.limits import DEFAULTS, GIB, MIB, current, kind_of, parse_limits, parse_size, shown
from floodmark.state.files import compression
from floodmark.state.files.hdfs import file_records
from floodmark.state.files.rocksdb import parse_changelog

GOLDEN = Path(__file__).parent / "golden" / "4.2"
MEMORY = 1 << 30
Capture = pytest.CaptureFixture[str]
_MAIN = "import sys; from floodmark.cli.main import run; sys.exit(run(sys.argv[1:]))"


def _limited(*arguments: object, memory: int = MEMORY) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _MAIN, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (memory, memory)),
    )


def _golden(tmp_path: Path, name: str) -> Path:
    shutil.copytree(GOLDEN / name / "checkpoint", tmp_path / "cp")
    return tmp_path / "cp"


def _grow(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(size)
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


SPARSE = {
    "offsets/2": ("inspect", "batches"),
    "commits/2": ("inspect", "batches"),
    "metadata": ("inspect",),
    "sources/0/2": ("files", "doctor"),
    "state/0/_metadata/metadata": ("inspect", "doctor"),
    "state/0/0/_metadata/schema": ("state", "doctor"),
    "_floodmark/lease.json": ("doctor", "compact"),
    "_floodmark/starts/1.json": ("doctor", "compact"),
    "_floodmark/journal/0123456789abcdef.json": ("undo", "compact"),
    "state/0/0/3.delta": ("state",),
}


@pytest.mark.parametrize(
    ("path", "verb"), [(path, verb) for path, verbs in SPARSE.items() for verb in verbs]
)
def test_a_sparse_file_is_not_read(path: str, verb: str, tmp_path: Path) -> None:
    folder = _golden(tmp_path, "sales-hdfs")
    _grow(folder / path, 6 * GIB)
    ended = _limited(verb, folder)
    assert ended.returncode in (0, 1, 3), ended.stderr
    told = ended.stdout + ended.stderr
    assert "not enough memory" not in told
    if verb in ("inspect", "doctor", "state", "undo") and "lease" not in path:
        assert "more than is read" in told or "starts" in path, told


def _zstd_bomb() -> bytes:
    import cramjam

    frame = cramjam.zstd.Compressor()
    frame.compress(struct.pack(">i", 16) + bytes(16) + struct.pack(">i", 1 << 30))
    for _ in range(1024):
        frame.compress(bytes(1 << 20))
    return bytes(frame.finish())


def _lz4_bomb() -> bytes:
    """5 MB that unpack to 1 GiB: records without a key and without a value."""
    block = b"".join(compression._lz4_blocks([bytes(32768)]))
    return block[:-21] * 32_768 + block[-21:]


@pytest.mark.parametrize("make", [_zstd_bomb, _lz4_bomb])
@pytest.mark.parametrize("verb", [["state"], ["state", "--stats"], ["doctor", "--read-data"]])
def test_a_bomb(make: object, verb: list[str], tmp_path: Path) -> None:
    assert callable(make)
    folder = _golden(tmp_path, "sales-hdfs")
    (folder / "state/0/0/3.delta").write_bytes(make())
    (folder / "state/0/0/.3.delta.crc").unlink()
    ended = _limited(verb[0], folder, *verb[1:])
    assert ended.returncode in (1, 3), ended.stderr
    told = ended.stdout + ended.stderr
    assert "not enough memory" not in told
    assert "3.delta" in told


def test_a_row_that_claims_to_be_enormous() -> None:
    content = struct.pack(">i", 16) + bytes(16) + struct.pack(">i", 1 << 30) + bytes(100)
    with pytest.raises(OverLimit, match="row at byte 0"):
        list(file_records("1.delta", compression.compress(content)))


def test_a_large_row_is_read_in_one_pass() -> None:
    """Twice the size of a row must not take four times as long."""
    value = os.urandom(1 << 20) * 48
    content = b"".join(
        [struct.pack(">i", 8), bytes(8), struct.pack(">i", len(value)), value, b"\xff" * 4]
    )
    (records,) = file_records("1.delta", compression.compress(content, "zstd"))
    assert records.values[0] == value


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy"])
def test_real_rows_of_zeros_are_not_a_bomb(codec: str) -> None:
    """A sketch that is still empty has a kilobyte of zeros; many of them pack very well."""
    rows = [
        struct.pack(">i", 16) + struct.pack(">qq", 0, at) + struct.pack(">i", 1024) + bytes(1024)
        for at in range(100_000)
    ]
    data = compression.compress(b"".join([*rows, b"\xff" * 4]), codec)
    assert sum(len(records) for records in file_records("1.delta", data)) == 100_000


def test_a_changelog_is_within_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = compression.compress(bytes(9 << 20) + b"\xff" * 4)
    assert parse_changelog(data).records is not None
    monkeypatch.setenv("FLOODMARK_LIMITS", "memory=64M")
    with pytest.raises(OverLimit, match="content"):
        parse_changelog(data)


def test_keys_are_within_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from floodmark.state.files.hdfs import hdfs_source, live_records

    data = compression.compress(bytes(8 << 20) + b"\xff" * 4)
    source = hdfs_source("1.delta", True, lambda: data)
    assert sum(map(len, live_records([source]))) == 1
    monkeypatch.setenv("FLOODMARK_LIMITS", "memory=32M")
    with pytest.raises(OverLimit, match="keys"):
        list(live_records([source]))


def test_a_compact_file_of_tens_of_megabytes_is_read(tmp_path: Path, capsys: Capture) -> None:
    """A file source lists every file that it has ever seen."""
    line = '{"path":"file:///in/%0170d.json","timestamp":1,"batchId":%d}'
    entries = "\n".join(["v1", *(line % (at, at % 3) for at in range(150_000))]).encode()
    assert len(entries) > 30 * MIB
    tree = samples.file_stream() | {"sources/0/9.compact": entries}
    samples.write(tmp_path, tree)
    assert run(["doctor", str(tmp_path)]) in (0, 1)
    assert "more than is read" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "head", "line", "mebibytes", "verb"),
    [
        ("offsets/2", b"v1\n{}", b"\n", 31, "inspect"),
        ("offsets/2", b"v1\n{}", b"\n-", 31, "doctor"),
        ("sources/0/11", b"v1", b'\n{"path":"file:///x","timestamp":1,"batchId":11}', 300, "files"),
        ("sources/0/11", b"v1", b"\n", 500, "files"),
        ("_floodmark/journal/0123456789abcdef.json", b"[", b"[],", 400, "undo"),
    ],
)
def test_what_takes_more_when_it_is_parsed(
    path: str, head: bytes, line: bytes, mebibytes: int, verb: str, tmp_path: Path
) -> None:
    """Millions of short lines take ten times as much memory as the file has bytes."""
    folder = _golden(tmp_path, "files")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    with (folder / path).open("wb") as file:
        file.write(head)
        for _ in range(mebibytes):
            file.write(line * (MIB // len(line)))
    (folder / path).with_name(f".{(folder / path).name}.crc").unlink(missing_ok=True)
    ended = _limited(verb, folder)
    assert ended.returncode in (0, 1, 3), ended.stderr
    assert "not enough memory" not in ended.stdout + ended.stderr


@pytest.fixture
def large_entry(tmp_path: Path) -> Iterator[Path]:
    offset = json.dumps({"orders": {str(at): at for at in range(20_000)}})
    assert len(offset) > 200_000
    samples.write(tmp_path, samples.logs([0], [0], offset=lambda _: offset))
    before = os.environ.pop("FLOODMARK_LIMITS", None)
    yield tmp_path
    os.environ.pop("FLOODMARK_LIMITS", None)
    if before is not None:
        os.environ["FLOODMARK_LIMITS"] = before


def test_limits_are_set_by_an_option_and_by_a_variable(large_entry: Path, capsys: Capture) -> None:
    assert run(["offsets", str(large_entry)]) == 0
    capsys.readouterr()
    os.environ["FLOODMARK_LIMITS"] = "entry=100K"
    assert run(["offsets", str(large_entry)]) == 3
    err = capsys.readouterr().err
    assert "offsets/0 has" in err
    assert "--raise-limit entry=" in err
    assert run(["--raise-limit", "entry=1M", "offsets", str(large_entry)]) == 0


def test_the_command_of_the_message_works(large_entry: Path, capsys: Capture) -> None:
    os.environ["FLOODMARK_LIMITS"] = "entry=100K"
    run(["offsets", str(large_entry)])
    raised = capsys.readouterr().err.split("--raise-limit ")[1].split()[0].rstrip("`")
    assert run(["--raise-limit", raised, "offsets", str(large_entry)]) == 0


@pytest.mark.parametrize("wrong", ["nothing=1G", "entry", "entry=", "entry=1X", "=", "entry=-1"])
def test_a_wrong_limit_is_said_at_once(wrong: str, large_entry: Path, capsys: Capture) -> None:
    assert run(["--raise-limit", wrong, "inspect", str(large_entry)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_sizes_and_kinds() -> None:
    assert [parse_size(text) for text in ("7", "2K", "3 MiB", "4g")] == [
        7,
        2 << 10,
        3 << 20,
        4 << 30,
    ]
    with pytest.raises(WrongUse):
        parse_size("much")
    assert parse_limits("row=1M, zip=2M").sizes["row"] == MIB
    kinds = {
        "offsets/7": "entry",
        "offsets/.7.crc": "checksum",
        "metadata": "metadata",
        "sources/0/9.compact": "file-log",
        "_spark_metadata/3": "file-log",
        "state/0/1/5.delta": "state",
        "state/0/0/SSTs/000008-x.sst": "state",
        "state/0/_metadata/v2/0": "metadata",
        "state/0/0/_metadata/schema": "schema",
        "state/0/_stateSchema/default/0_x": "schema",
        "_floodmark/lease.json": "lease",
        "_floodmark/starts/1.json": "note",
        "_floodmark/journal/x.json": "journal",
        "_floodmark/kept/x/target/offsets/3": "entry",
        "snapshots/x.json": "snapshot",
        "objects/ab/abcd": "state",
    }
    assert {path: kind_of(path) for path in kinds} == kinds
    assert set(kinds.values()) <= set(DEFAULTS)
    assert current().of("entry") <= DEFAULTS["entry"]


def test_memory_that_runs_out_is_said(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("floodmark.api.look", out_of_memory)
    assert run(["inspect", str(tmp_path)]) == 3
    assert "not enough memory" in capsys.readouterr().err


def test_the_limits_are_documented() -> None:
    text = (Path(__file__).parents[1] / "docs" / "security.md").read_text()
    for kind, size in DEFAULTS.items():
        assert f"| `{kind}` |" in text
        written = str(size) if kind == "seconds" else shown(size)
        assert kind in ("memory", "ratio") or f"| {written} |" in text.split(f"`{kind}` |")[1]


@pytest.mark.parametrize("pinned", ["10000000", "1180591620717411303424"])
@pytest.mark.parametrize("verb", [["doctor", "--read-data"], ["state"], ["repair"]])
def test_partitions_that_no_machine_has(verb: list[str], pinned: str, tmp_path: Path) -> None:
    folder = _golden(tmp_path, "sales-hdfs")
    for path in (folder / "offsets").glob("[0-9]*"):
        setting = '"spark.sql.shuffle.partitions":"2"'
        assert setting in path.read_text()
        path.write_text(path.read_text().replace(setting, setting.replace('"2"', f'"{pinned}"')))
        (path.parent / f".{path.name}.crc").unlink()
    ended = _limited(verb[0], folder, *verb[1:], memory=512 * MIB)
    assert ended.returncode in (1, 3, 4), ended.stderr
    assert "not enough memory" not in ended.stderr
