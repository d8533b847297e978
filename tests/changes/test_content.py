"""`--read-data`: damage that a size does not show."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.changes.read_data import compare_contents
from floodmark.errors import MalformedFile, StoppedMidway
from floodmark.storage.files import open_files

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
CLOCK = Clock(pause=lambda seconds: None)
DEEP = Carrying(execute=True, clock=CLOCK, read_data=True)
KINDS = {
    "sales-hdfs": "*.delta",
    "sales-hdfs-snapshot": "*.snapshot",
    "sales-rocksdb": "SSTs/*.sst",
    "sales-changelog": "*.changelog",
}


@pytest.fixture
def cp(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / request.param / "checkpoint", tmp_path / "cp"))


def damage(folder: Path, pattern: str) -> None:
    """Bytes in the middle of every such file, turned over: no size changes."""
    for path in folder.rglob(pattern):
        data = bytearray(path.read_bytes())
        middle = len(data) // 2
        data[middle : middle + 4] = bytes(255 - byte for byte in data[middle : middle + 4])
        path.write_bytes(bytes(data))


@pytest.mark.parametrize("cp", KINDS, indirect=True)
def test_sound_state_is_read_and_said_to_be_sound(cp: Path, tmp_path: Path) -> None:
    change = api.copy(str(cp), str(tmp_path / "new"), carrying=DEEP)
    assert any("was read" in note and "all sound" in note for note in change.plan.notes)


@pytest.mark.parametrize(("cp", "pattern"), KINDS.items(), indirect=["cp"], ids=KINDS)
def test_damage_inside_the_state(cp: Path, pattern: str, tmp_path: Path) -> None:
    damage(cp / "state", pattern)
    api.upgrade(str(cp), str(tmp_path / "shallow"))  # every file is there, with its size
    for go in (
        lambda: api.upgrade(str(cp), str(tmp_path / "new"), carrying=DEEP),
        lambda: api.copy(str(cp), str(tmp_path / "new"), carrying=DEEP),
    ):
        with pytest.raises(MalformedFile, match=r"state/0/.* is damaged"):
            go()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("cp", ["sales-hdfs"], indirect=True)
def test_damage_is_found_before_a_rewind(cp: Path) -> None:
    goal = api.batches(str(cp))[-3].batch
    damage(cp / "state", "*.delta")
    with pytest.raises(MalformedFile, match="is damaged"):
        api.rewind(str(cp), to_batch=goal, carrying=replace(DEEP, execute=False))


@pytest.mark.parametrize("cp", ["sales-rocksdb"], indirect=True)
@pytest.mark.parametrize("verb", ["copy", "restore"])
def test_what_was_copied_is_compared_by_content(cp: Path, verb: str, tmp_path: Path) -> None:
    if verb == "copy":
        plan = api.copy(str(cp), str(tmp_path / "new"), carrying=DEEP).plan
    else:
        api.backup(str(cp), str(tmp_path / "repo"), carrying=DEEP)
        plan = api.restore(str(tmp_path / "repo"), str(tmp_path / "new"), carrying=DEEP).plan
    origin, target = open_files(plan.origin), open_files(plan.target)
    assert compare_contents(plan, origin, target) > 10
    table = next((tmp_path / "new").rglob("*.sst"))
    data = table.read_bytes()
    table.unlink()  # a copy on one disk is a link
    table.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(StoppedMidway, match="does not hold what it was copied from"):
        compare_contents(plan, origin, target)
