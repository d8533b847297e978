"""RocksDB's tables by their blocks' checksums: never called sound where RocksDB sees damage."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from floodmark.checkpoint.layout import side_file
from floodmark.diagnosis.gather import gather
from floodmark.state.files.sstable import table_walk
from floodmark.storage.local import LocalFiles
from forged_tables import forged
from rules.examples import GOLDEN, Tree, golden
from samples import HeldFiles, write

TABLES = sorted(GOLDEN.rglob("*.sst"))


def is_sound(data: bytes, piece: int = 1 << 30) -> bool:
    walk = table_walk(len(data), lambda at, count: data[at : at + count])
    if walk is None:
        return False
    at = 0
    while at < len(data):
        used = walk.take(memoryview(data)[at : at + piece])
        if not used:
            return False
        at += used
    return walk.fits


def test_tables_of_every_spark_are_understood() -> None:
    assert len(TABLES) > 50
    assert {path.relative_to(GOLDEN).parts[0] for path in TABLES} >= {"3.5", "4.0", "4.3"}
    for path in TABLES:
        data = path.read_bytes()
        assert is_sound(data), path
        assert is_sound(data, piece=len(data) * 9 // 10), path


@pytest.mark.parametrize("spark", ["3.5", "4.2"])
def test_a_change_of_any_byte_is_seen(spark: str) -> None:
    path = next(path for path in TABLES if path.relative_to(GOLDEN).parts[0] == spark)
    data, chance = path.read_bytes(), random.Random(spark)
    # A footer can be changed so that it leads to the same blocks, for RocksDB too.
    for at in range(len(data) - 53):
        changed = bytearray(data)
        changed[at] ^= 1 << chance.randrange(8)
        assert not is_sound(bytes(changed)), at
    for at in range(0, len(data), 7):
        assert not is_sound(data[:at])
        assert not is_sound(data[:at] + data[at + 1 :])
        assert not is_sound(data[:at] + b"\0" + data[at:])


def test_blocks_that_are_forged_with_right_checksums_are_walked_or_left() -> None:
    """An index that does not unpack, or leads elsewhere, is RocksDB's to judge."""
    drawn = random.Random(2026)
    verdicts = {is_sound(forged(path.read_bytes(), drawn)) for path in TABLES for _ in range(20)}
    assert verdicts == {True, False}


def without_side_files(tree: Tree) -> Tree:
    return {path: data for path, data in tree.items() if "/." not in path}


@pytest.mark.parametrize("name", ["3.5/sales-rocksdb", "4.1/sales-format-2"])
def test_damage_is_found_on_a_disk_and_elsewhere(name: str, tmp_path: Path) -> None:
    tree = without_side_files(golden(name))
    tables = [path for path in tree if path.endswith(".sst")]
    chance = random.Random(name)
    found = 0
    for path in tables:
        assert side_file(path) not in tree
        data = bytearray(tree[path])
        data[chance.randrange(len(data) // 2)] ^= 4
        damaged = tree | {path: bytes(data)}
        place = write(tmp_path / path.replace("/", "-"), damaged)
        evidence = gather(LocalFiles(str(place), str(place)), 1.0)
        assert evidence.faults.keys() == gather(HeldFiles(damaged), 1.0).faults.keys()
        found += bool(evidence.faults)
    assert found
    sound = write(tmp_path / "sound", tree)
    assert not gather(LocalFiles(str(sound), str(sound)), 1.0).faults


def test_a_footer_that_leads_out_of_its_table_never_reaches_rocksdb(tmp_path: Path) -> None:
    """RocksDB asked for as much memory as the footer said, and ended the process (SIGABRT)."""
    place = tmp_path / "checkpoint"
    shutil.copytree(GOLDEN / "4.2" / "sales-rocksdb" / "checkpoint", place)
    table = max(place.glob("state/0/*/SSTs/*.sst"))
    data = bytearray(table.read_bytes())
    data[-52:-12] = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x09" * 2 + bytes(20)
    table.write_bytes(data)
    for side in place.rglob(".*.crc"):
        side.unlink()
    code = "import sys; from floodmark.cli.main import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor", str(place), "--read-data"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "points outside the table" in " ".join(done.stdout.split())
