"""Every changing verb, killed before every single change of storage that it makes.

Afterwards the old checkpoint or the new one is whole, or no Spark can start on it; and
repeating the command, or undoing it, leads to what it should.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest
from changes_crashing import Countdown, Killed, dying

import samples
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.carry.checkpoint_files import belongs
from floodmark.changes.fingerprint import BLOCK
from floodmark.changes.in_use import Clock
from floodmark.errors import CannotRead, NoAnswer
from floodmark.storage.files import Files, open_files

if TYPE_CHECKING:
    from services.s3 import S3Server

CLOCK = Clock(pause=lambda seconds: None)
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
    run: Callable[[str, Carrying], object]
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
    Verb("upgrade", lambda r, go: api.upgrade(f"{r}/cp", f"{r}/new", carrying=go), "new"),
    Verb(
        "upgrade-dropped",
        lambda r, go: api.upgrade(f"{r}/cp", f"{r}/new", drop_in_flight=True, carrying=go),
        "new",
    ),
    Verb(
        "upgrade-without-state",
        lambda r, go: api.upgrade(f"{r}/cp", f"{r}/new", without_state=True, carrying=go),
        "new",
    ),
    Verb(
        "copy", lambda r, go: api.copy(f"{r}/cp", f"{r}/new", new_identity=True, carrying=go), "new"
    ),
    Verb("rewind", lambda r, go: api.rewind(f"{r}/cp", to_batch=0, carrying=go), "cp"),
    Verb("restore", lambda r, go: api.restore(f"{r}/repo", f"{r}/new", carrying=go), "new"),
    Verb(
        "restore-over",
        lambda r, go: api.restore(f"{r}/repo", f"{r}/cp", accept=["repeats", "skips"], carrying=go),
        "cp",
    ),
]
BY_NAME = {verb.name: verb for verb in VERBS}


class Storage:
    """A fresh root for each death: a folder, a place in memory, or one on a real S3 server."""

    def __init__(self, kind: str, folder: Path, server: S3Server | None = None) -> None:
        self.kind = kind
        self.folder = folder
        self.server = server
        self.number = 0
        self.options = server.storage_options if server else None
        # Each file is a request there; and no checksums lie beside.
        partitions = 1 if server else 4
        self.origin = samples.sales(batches=3, partitions=1) if server else ORIGIN
        self.later = samples.sales(batches=5, partitions=partitions, in_flight=False)
        self.go = Carrying(execute=True, storage=self.options, clock=CLOCK)

    def root(self) -> str:
        self.number += 1
        if self.server is not None:
            return self.server.place("crash")
        if self.kind == "memory":
            # Memory forgets nothing: an address of an object may come again.
            return f"memory://crash-{uuid.uuid4()}"
        return str(self.folder / str(self.number))

    def place(self, root: str, name: str) -> Files:
        return open_files(f"{root}/{name}", self.options)

    def dying(self, at: int | None) -> AbstractContextManager[Countdown]:
        files = self.place("s3://floodmark", "any") if self.server else None
        return dying(at, files.fs if files else None)  # type: ignore[attr-defined]

    def prepared(self, verb: Verb) -> str:
        root = self.root()
        origin = self.place(root, "cp")
        samples.put(origin, self.origin)
        if verb.name.startswith("restore"):
            api.backup(f"{root}/cp", f"{root}/repo", carrying=self.go)
            if verb.name == "restore-over":  # the stream has gone on since
                samples.put(origin, self.later)
        return root

    def undo(self, root: str, verb: Verb) -> None:
        # It may have died before it had written down that it began.
        with contextlib.suppress(NoAnswer, CannotRead):
            api.undo(f"{root}/{verb.changed}", carrying=self.go)

    def drop(self, root: str) -> None:
        if self.kind == "local":
            shutil.rmtree(root)
        elif self.kind == "memory":  # every look at it walks over all that is in it
            fsspec.filesystem("memory").rm(root, recursive=True)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.services)])
def storage(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    # Power is not cut here: waiting for the disk would be most of the time.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return Storage(request.param, tmp_path, server)


CHOSEN = {"local": 4, "memory": 4, "s3": 1}
"""How many deaths of each kind run with every `make test`; `make soak` dies all of them."""
WHOLE = pytest.param(True, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="every-death")
SHORT = pytest.param(False, id="some-deaths")


def deaths_of(storage: Storage, changes: int, whole: bool) -> list[int]:
    everything = list(range(1, changes + 1))
    chosen = random.Random(changes).sample(everything, CHOSEN[storage.kind])
    return everything if whole else sorted(chosen)


@pytest.mark.parametrize("whole", [SHORT, WHOLE])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_killed_before_every_change(
    storage: Storage, verb: Verb, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    root = storage.prepared(verb)
    before = tree_of(storage.place(root, verb.changed))
    origin_before = tree_of(storage.place(root, "cp"))
    with storage.dying(None) as counted:
        verb.run(root, storage.go)
    wanted = tree_of(storage.place(root, verb.changed))
    assert wanted != before
    assert not is_blocked(wanted)
    chosen = deaths_of(storage, counted.count, whole)
    for at in chosen:
        for going_on in ("repeat", "undo"):
            root = storage.prepared(verb)
            with pytest.raises(Killed), storage.dying(at):
                verb.run(root, storage.go)
            left = tree_of(storage.place(root, verb.changed))
            # Whoever starts a query now finds the old, the new, or a refusal of Spark.
            assert left in (before, _renamed(wanted, left)) or is_blocked(left), (at, going_on)
            if verb.changed != "cp":
                assert tree_of(storage.place(root, "cp")) == origin_before
            if going_on == "repeat":
                verb.run(root, storage.go)
                found = tree_of(storage.place(root, verb.changed))
                assert found == _renamed(wanted, found), at
            else:
                storage.undo(root, verb)
                assert tree_of(storage.place(root, verb.changed)) == before, at
            storage.drop(root)
    _tell(capsys, whole, f"{verb.name} on {storage.kind}", counted.count, 2 * len(chosen))


def _tell(
    capsys: pytest.CaptureFixture[str], whole: bool, what: str, changes: int, deaths: int
) -> None:
    if whole:
        with capsys.disabled():
            print(f"\n  {what}: {changes} changes of storage, {deaths} deaths", end="")


def _renamed(wanted: Tree, found: Tree) -> Tree:
    """A new query id is another one in each change."""
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
    before = tree_of(storage.place(root, verb.changed))
    verb.run(root, storage.go)
    with storage.dying(None) as counted:
        api.undo(f"{root}/{verb.changed}", carrying=storage.go)
    assert tree_of(storage.place(root, verb.changed)) == before
    chosen = deaths_of(storage, counted.count, whole)
    for at in chosen:
        root = storage.prepared(verb)
        verb.run(root, storage.go)
        wanted = tree_of(storage.place(root, verb.changed))
        with pytest.raises(Killed), storage.dying(at):
            api.undo(f"{root}/{verb.changed}", carrying=storage.go)
        left = tree_of(storage.place(root, verb.changed))
        assert left in (before, wanted) or is_blocked(left), at
        storage.undo(root, verb)
        assert tree_of(storage.place(root, verb.changed)) == before, at
        storage.drop(root)
    _tell(capsys, whole, f"undo of {name} on {storage.kind}", counted.count, len(chosen))


@pytest.mark.parametrize("whole", [SHORT, WHOLE])
def test_a_backup_killed_before_every_change(
    storage: Storage, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    root = storage.prepared(BY_NAME["upgrade"])
    with storage.dying(None) as counted:
        api.backup(f"{root}/cp", f"{root}/repo", carrying=storage.go)
    chosen = deaths_of(storage, counted.count, whole)
    for at in chosen:
        root = storage.prepared(BY_NAME["upgrade"])
        with pytest.raises(Killed), storage.dying(at):
            api.backup(f"{root}/cp", f"{root}/repo", carrying=storage.go)
        assert tree_of(storage.place(root, "cp")) == storage.origin
        api.backup(f"{root}/cp", f"{root}/repo", carrying=storage.go)
        _, damage = api.check_backups(f"{root}/repo", storage.options)
        assert damage == ()
        api.restore(f"{root}/repo", f"{root}/new", carrying=storage.go)
        belonging = {path: data for path, data in storage.origin.items() if belongs(path)}
        assert tree_of(storage.place(root, "new")) == belonging, at
        storage.drop(root)
    _tell(capsys, whole, f"backup on {storage.kind}", counted.count, len(chosen))
