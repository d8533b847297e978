"""Large state files in pieces: the same is found as by reading each as a whole."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from pathlib import Path

import pytest

from floodmark.checkpoint.checksums.sidefiles import side_file_of
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import side_file
from floodmark.diagnosis import large_files as evidence_large
from floodmark.diagnosis.gather import gather
from floodmark.diagnosis.large_files import LARGE, LargeFiles
from floodmark.state.files.compression import Lz4Walk, compress, lz4_ends
from floodmark.state.files.crc32c import crc_of
from floodmark.state.files.hdfs import write_snapshot
from floodmark.storage.local import LocalFiles
from rules.examples import Tree, golden
from samples import HeldFiles, write

PATH = "state/0/0/2.snapshot"


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_large, "_PIECE", 1 << 17)


@lru_cache(maxsize=1)
def snapshot() -> bytes:
    chance = random.Random(1)
    rows = [bytes(8) + chance.randbytes(8) for _ in range(60_000)]
    data = write_snapshot(rows, rows[::-1])
    assert len(data) > 2 * LARGE
    return data


def tree_with(data: bytes, sums: str, at: bytes | None = None) -> Tree:
    """`sums`: whose checksums lie beside the file, of the bytes `at`, by default its own."""
    tree = dict(golden("3.5/sales-hdfs"))
    tree.pop(side_file(PATH), None)
    tree[PATH] = data
    summed = data if at is None else at
    if "Hadoop" in sums:
        tree[side_file(PATH)] = side_file_of(summed)
    if "Spark" in sums:
        fields = {"algorithm": "CRC32C", "value": crc_of(summed), "mainFileSize": len(summed)}
        tree[f"{PATH}.crc"] = json.dumps(fields).encode()
    return tree


def seen(evidence: Evidence) -> tuple[object, ...]:
    return (
        dict(evidence.faults),
        evidence.disagreeing,
        evidence.altered,
        dict(evidence.cures),
        dict(evidence.checksums),
        dict(evidence.strays),
    )


def both_ways(tree: Tree, folder: Path) -> tuple[tuple[object, ...], tuple[object, ...]]:
    write(folder, tree)
    return (
        seen(gather(LocalFiles(str(folder), str(folder)), 1.0)),
        seen(gather(HeldFiles(tree), 1.0)),
    )


def damages(data: bytes) -> dict[str, bytes]:
    chance = random.Random(3)
    found = {"whole": data, "longer": data + b"more", "nothing of it": bytes(len(data))}
    for number in range(6):
        at = chance.randrange(len(data))
        flipped = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        found |= {f"flipped {number}": flipped, f"cut {number}": data[:at]}
        found[f"hole {number}"] = data[:at] + data[at + 100 :]
    second = data.index(b"LZ4Block", 1)
    for at in range(second, second + 21):
        found[f"header {at - second}"] = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
    return found


@pytest.mark.parametrize("sums", ["none", "Hadoop", "Spark", "Hadoop and Spark"])
def test_the_same_is_found_in_pieces_and_as_a_whole(sums: str, tmp_path: Path) -> None:
    for name, data in damages(snapshot()).items():
        in_pieces, as_a_whole = both_ways(tree_with(data, sums, snapshot()), tmp_path)
        assert in_pieces == as_a_whole, name
        # What follows the end of a stream is read by nobody: only a checksum tells of it.
        unseen = name == "whole" or (name == "longer" and sums == "none")
        assert any(map(bool, in_pieces[:5])) != unseen, name


@pytest.mark.parametrize("sums", ["none", "Hadoop", "Spark"])
def test_damage_older_than_its_checksum(sums: str, tmp_path: Path) -> None:
    closed_early = compress(bytes(100) + random.Random(5).randbytes(2 * LARGE))
    for data in (closed_early, snapshot()[: LARGE + 5], compress(bytes(9), "zstd") * LARGE):
        in_pieces, as_a_whole = both_ways(tree_with(data, sums), tmp_path)
        assert in_pieces == as_a_whole
        assert PATH in as_a_whole[0]  # type: ignore[operator]


def test_a_sound_large_file_is_never_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[bool] = []
    content = LargeFiles.content

    def noted(self: LargeFiles, file: object) -> object:
        found = content(self, file)  # type: ignore[arg-type]
        passed.append(found is not None)
        return found

    monkeypatch.setattr(LargeFiles, "content", noted)
    for sums in ("none", "Hadoop", "Spark"):
        passed.clear()
        both_ways(tree_with(snapshot(), sums), tmp_path / sums)
        assert passed.count(True) == 1  # of the files on the disk


@pytest.mark.parametrize("vouched", [False, True])
def test_pieces_of_any_size_lead_to_the_same_ends(vouched: bool) -> None:
    data = compress(random.Random(2).randbytes(200_003))
    for size in (40_000, 65_536, 99_999, len(data)):
        walk, at = Lz4Walk(vouched), 0
        while not walk.ended:
            used = walk.take(memoryview(data)[at : at + size])
            assert used > 0
            at += used
        assert (walk.head, walk.tail(8)) == lz4_ends(data, 8)
