"""Every changing verb, killed before every single change of storage that it makes.

Afterwards the old checkpoint or the new one is whole, or no Spark can start on it; and
repeating the command, or undoing it, leads to what it should.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fsspec
import pytest
from changes_crashing import Killed, dying

import samples
from floodmark import api
from floodmark.changes.belonging import belongs
from floodmark.changes.fingerprint import BLOCK
from floodmark.changes.use import Clock
from floodmark.changes.verbs import Carrying
from floodmark.errors import NoAnswer
from floodmark.storage.files import Files, open_files

GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
Tree = dict[str, bytes]


def tree_of(files: Files) -> Tree:
    """What belongs to the checkpoint, and what keeps it from starting."""
    level = files.level()
    if not level.files and not level.folders:
        return {}
    return {
        file.path: files.read(file.path)
        for file in files.list().files
        if belongs(file.path)
        or (file.path.endswith(".crc") and not file.path.startswith("_floodmark/"))
    }


def is_blocked(tree: Tree) -> bool:
    numbers = [int(path[8:]) for path in tree if path.startswith("offsets/") and path[8:].isdigit()]
    return bool(numbers) and tree[f"offsets/{max(numbers)}"].startswith(BLOCK)


@dataclass(frozen=True)
class Verb:
    name: str
    run: Callable[[str], object]
    """Given the root below which `cp`, `new` and `repo` lie."""
    changed: str
    """The place that it changes."""


def with_crc(tree: Tree) -> Tree:
    """As Hadoop leaves it on a local disk."""
    sides = {}
    for path in tree:
        folder, slash, name = path.rpartition("/")
        sides[f"{folder}{slash}.{name}.crc"] = b"crc\0"
    return {**tree, **sides}


ORIGIN = with_crc(samples.sales(batches=4))
VERBS = [
    Verb("upgrade", lambda r: api.upgrade(f"{r}/cp", f"{r}/new", carrying=GO), "new"),
    Verb(
        "upgrade-dropped",
        lambda r: api.upgrade(f"{r}/cp", f"{r}/new", drop_in_flight=True, carrying=GO),
        "new",
    ),
    Verb(
        "upgrade-without-state",
        lambda r: api.upgrade(f"{r}/cp", f"{r}/new", without_state=True, carrying=GO),
        "new",
    ),
    Verb("copy", lambda r: api.copy(f"{r}/cp", f"{r}/new", new_identity=True, carrying=GO), "new"),
    Verb("rewind", lambda r: api.rewind(f"{r}/cp", to_batch=1, carrying=GO), "cp"),
    Verb("restore", lambda r: api.restore(f"{r}/repo", f"{r}/new", carrying=GO), "new"),
    Verb("restore-over", lambda r: api.restore(f"{r}/repo", f"{r}/cp", carrying=GO), "cp"),
]
BY_NAME = {verb.name: verb for verb in VERBS}


class Storage:
    """A fresh root for each death: a folder, or a place in memory."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.number = 0

    def root(self) -> str:
        self.number += 1
        if self.kind == "memory":
            return f"memory://crash{id(self)}/{self.number}"
        return str(self.folder / str(self.number))

    def prepared(self, verb: Verb) -> str:
        root = self.root()
        origin = open_files(f"{root}/cp")
        samples.put(origin, ORIGIN)
        if verb.name.startswith("restore"):
            api.backup(f"{root}/cp", f"{root}/repo", carrying=GO)
            if verb.name == "restore-over":  # the stream has gone on since
                samples.put(origin, samples.sales(batches=5, in_flight=False))
        return root

    def drop(self, root: str) -> None:
        if self.kind == "local":
            shutil.rmtree(root)
        else:  # every look at the memory file system walks over all that is in it
            fsspec.filesystem("memory").rm(root, recursive=True)


@pytest.fixture(params=["local", "memory"])
def storage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    # Power is not cut here: waiting for the disk would be most of the time.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    return Storage(request.param, tmp_path)


def place(root: str, name: str) -> Files:
    return open_files(f"{root}/{name}")


CHOSEN = 4
"""How many deaths of each kind run with every `make test`; `make soak` dies all of them."""
WHOLE = pytest.param(True, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="every-death")
SHORT = pytest.param(False, id="some-deaths")


def deaths_of(changes: int, whole: bool) -> list[int]:
    everything = list(range(1, changes + 1))
    return everything if whole else sorted(random.Random(changes).sample(everything, CHOSEN))


@pytest.mark.parametrize("whole", [SHORT, WHOLE])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_killed_before_every_change(
    storage: Storage, verb: Verb, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    root = storage.prepared(verb)
    before = tree_of(place(root, verb.changed))
    origin_before = tree_of(place(root, "cp"))
    with dying(None) as counted:
        verb.run(root)
    wanted = tree_of(place(root, verb.changed))
    assert wanted != before
    assert not is_blocked(wanted)
    chosen = deaths_of(counted.count, whole)
    for at in chosen:
        for going_on in ("repeat", "undo"):
            root = storage.prepared(verb)
            with pytest.raises(Killed), dying(at):
                verb.run(root)
            left = tree_of(place(root, verb.changed))
            # Whoever starts a query now finds the old, the new, or a refusal of Spark.
            assert left in (before, _renamed(wanted, left)) or is_blocked(left), (at, going_on)
            if verb.changed != "cp":
                assert tree_of(place(root, "cp")) == origin_before
            if going_on == "repeat":
                verb.run(root)
                found = tree_of(place(root, verb.changed))
                assert found == _renamed(wanted, found), at
            else:
                _undo(root, verb)
                assert tree_of(place(root, verb.changed)) == before, at
            storage.drop(root)
    _tell(capsys, whole, f"{verb.name} on {storage.kind}", counted.count, 2 * len(chosen))


def _tell(
    capsys: pytest.CaptureFixture[str], whole: bool, what: str, changes: int, deaths: int
) -> None:
    if whole:
        with capsys.disabled():
            print(f"\n  {what}: {changes} changes of storage, {deaths} deaths", end="")


def _undo(root: str, verb: Verb) -> None:
    # It may have died before it had written down that it began.
    with contextlib.suppress(NoAnswer):
        api.undo(f"{root}/{verb.changed}", carrying=GO)


def _renamed(wanted: Tree, found: Tree) -> Tree:
    """A new query id is made from the place's name, which differs from death to death."""
    if "metadata" in wanted and "metadata" in found:
        return {**wanted, "metadata": found["metadata"]}
    return wanted


@pytest.mark.parametrize("whole", [SHORT, WHOLE])
@pytest.mark.parametrize("name", ["rewind", "upgrade", "restore-over"])
def test_an_undo_killed_before_every_change(
    storage: Storage, name: str, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = BY_NAME[name]
    root = storage.prepared(verb)
    before = tree_of(place(root, verb.changed))
    verb.run(root)
    with dying(None) as counted:
        api.undo(f"{root}/{verb.changed}", carrying=GO)
    assert tree_of(place(root, verb.changed)) == before
    chosen = deaths_of(counted.count, whole)
    for at in chosen:
        root = storage.prepared(verb)
        verb.run(root)
        wanted = tree_of(place(root, verb.changed))
        with pytest.raises(Killed), dying(at):
            api.undo(f"{root}/{verb.changed}", carrying=GO)
        left = tree_of(place(root, verb.changed))
        assert left in (before, wanted) or is_blocked(left), at
        _undo(root, verb)
        assert tree_of(place(root, verb.changed)) == before, at
        storage.drop(root)
    _tell(capsys, whole, f"undo of {name} on {storage.kind}", counted.count, len(chosen))


@pytest.mark.parametrize("whole", [SHORT, WHOLE])
def test_a_backup_killed_before_every_change(
    storage: Storage, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    root = storage.prepared(BY_NAME["upgrade"])
    with dying(None) as counted:
        api.backup(f"{root}/cp", f"{root}/repo", carrying=GO)
    chosen = deaths_of(counted.count, whole)
    for at in chosen:
        root = storage.prepared(BY_NAME["upgrade"])
        with pytest.raises(Killed), dying(at):
            api.backup(f"{root}/cp", f"{root}/repo", carrying=GO)
        assert tree_of(place(root, "cp")) == ORIGIN
        api.backup(f"{root}/cp", f"{root}/repo", carrying=GO)
        _, damage = api.check_backups(f"{root}/repo")
        assert damage == ()
        api.restore(f"{root}/repo", f"{root}/new", carrying=GO)
        belonging = {path: data for path, data in ORIGIN.items() if belongs(path)}
        assert tree_of(place(root, "new")) == belonging, at
        storage.drop(root)
    _tell(capsys, whole, f"backup on {storage.kind}", counted.count, len(chosen))
