"""The MANIFEST of every snapshot that Spark wrote is whole, and no other byte in it is."""

from __future__ import annotations

import random
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from floodmark.errors import MalformedFile
from floodmark.state.files.rocksdb_log import require_whole_log
from rules.examples import GOLDEN, golden
from samples import write

ZIPS = sorted(GOLDEN.rglob("state/**/*.zip"))


def manifests(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as packed:
        return [packed.read(name) for name in packed.namelist() if name.startswith("MANIFEST-")]


def test_what_spark_wrote_is_whole() -> None:
    found = [data for path in ZIPS for data in manifests(path)]
    assert len(found) > 50
    for data in found:
        require_whole_log("MANIFEST", data)


def test_a_long_one_goes_over_blocks_and_space_at_its_end() -> None:
    data = manifests(ZIPS[0])[0]
    filled = data + bytes((32 << 10) - len(data))
    require_whole_log("MANIFEST", filled + data)
    with pytest.raises(MalformedFile, match="damaged at byte 32768"):
        require_whole_log("MANIFEST", filled + b"x")


@pytest.mark.parametrize("seed", range(3))
def test_a_change_of_any_byte_is_seen(seed: int) -> None:
    chance = random.Random(seed)
    data = manifests(chance.choice(ZIPS))[0]
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << chance.randrange(8)
        with pytest.raises(MalformedFile):
            require_whole_log("MANIFEST", bytes(changed))
    for at in range(1, len(data), 5):
        with pytest.raises(MalformedFile):
            require_whole_log("MANIFEST", data[:at] + data[at : at + 6] + data[at:])


def test_a_manifest_that_rocksdb_would_try_for_ever_is_refused(tmp_path: Path) -> None:
    """Repeated bytes in its first record: RocksDB did not come back from opening it."""
    tree = golden("4.2/sales-format-2")
    for path in [path for path in tree if path.endswith(".zip")]:
        with zipfile.ZipFile(BytesIO(tree[path])) as packed:
            members = {name: packed.read(name) for name in packed.namelist()}
        made = BytesIO()
        with zipfile.ZipFile(made, "w") as packed:
            for name, data in members.items():
                changed = data[:49] + data[43:49] + data[49:]
                packed.writestr(name, changed if name.startswith("MANIFEST-") else data)
        tree[path] = made.getvalue()
    place = write(
        tmp_path / "cp", {path: data for path, data in tree.items() if not path.endswith(".crc")}
    )
    code = "import sys; from floodmark.cli.main import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "state", str(place), "--stats"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 3
    assert "MANIFEST" in done.stderr
