"""The command itself, killed by the system in the middle of its work: every verb, every change.

Some deaths run with every `make test`; `make soak` dies all of them, on a local disk and on a
real S3 server.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import samples
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.carry.checkpoint_files import belongs
from floodmark.changes.fingerprint import BLOCK
from floodmark.changes.in_use import Clock
from floodmark.errors import CannotRead, NoAnswer
from floodmark.storage.files import open_files

KILLED = Path(__file__).with_name("killed.py")
LONG_AGO = 1_700_000_000
Tree = dict[str, bytes]


class Place:
    """A root on a disk or an S3 server, below which `cp`, `new` and `repo` lie."""

    def __init__(self, killed: Killed, root: str, options: Mapping[str, Any] | None = None) -> None:
        self.killed = killed
        self.root = root
        self.options = options
        self.go = Carrying(True, storage=options, clock=Clock(pause=lambda seconds: None))

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def tree(self, name: str) -> Tree:
        files = open_files(self.at(name), self.options)
        level = files.level()
        if not level.files and not level.folders:
            return {}
        found = [file.path for file in files.list().files if belongs(file.path)]
        read = files.read_many(found)
        return {path: data for path, data in read.items() if isinstance(data, bytes)}

    def put(self, name: str, tree: Tree) -> None:
        samples.put(open_files(self.at(name), self.options), tree)
        folder = Path(self.at(name))
        for path in folder.rglob("*") if self.options is None else ():
            os.utime(path, (LONG_AGO, LONG_AGO))  # stopped long ago: nobody watches it

    def run(self, at: int, *words: str) -> Answer:
        """The command, which dies before its at-th change of storage; 0 counts them."""
        arguments = [self.at(word) if word in ("cp", "new", "repo") else word for word in words]
        for key, value in (self.options or {}).items():
            shown = json.dumps(value) if isinstance(value, (dict, bool)) else str(value)
            arguments += ["--storage", f"{key}={shown}"]
        if self.options is not None and words[0] in ("rewind", "restore", "undo"):
            arguments += ["--accept", "maybe-running"]  # what was just put there is fresh
        return self.killed.ask(at, [*arguments, "--execute"])


@dataclass(frozen=True)
class Answer:
    status: int
    changes: int
    err: str


class Killed:
    """tests/changes/killed.py, which runs commands in processes that are killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(KILLED)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, at: int, arguments: list[str]) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"at": at, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        return Answer(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    killed = Killed()
    yield killed
    killed.close()


def stopped(place: Place) -> None:
    place.put("cp", samples.sales(batches=3, partitions=1))


def backed_up(place: Place) -> None:
    stopped(place)
    api.backup(place.at("cp"), place.at("repo"), carrying=place.go)


def gone_on(place: Place) -> None:
    backed_up(place)
    place.put("cp", samples.sales(batches=4, partitions=1, in_flight=False))


def rewound(place: Place) -> None:
    stopped(place)
    api.rewind(place.at("cp"), to_batch=0, carrying=place.go)


def upgraded(place: Place) -> None:
    stopped(place)
    api.upgrade(place.at("cp"), place.at("new"), carrying=place.go)


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    changed: str
    """The place that it changes."""
    prepare: Callable[[Place], None] = stopped
    can_undo: bool = True


COMMANDS = {
    "upgrade": Command(("upgrade", "cp", "new"), "new"),
    "upgrade-dropped": Command(("upgrade", "cp", "new", "--drop-in-flight"), "new"),
    "upgrade-without-state": Command(("upgrade", "cp", "new", "--without-state"), "new"),
    "rewind": Command(("rewind", "cp", "--to-batch", "0"), "cp"),
    "copy": Command(("copy", "cp", "new", "--new-identity"), "new"),
    "restore": Command(("restore", "repo", "new"), "new", backed_up),
    "restore-over": Command(
        ("restore", "repo", "cp", "--accept", "repeats", "--accept", "skips"), "cp", gone_on
    ),
    "undo-rewind": Command(("undo", "cp"), "cp", rewound, can_undo=False),
    "undo-upgrade": Command(("undo", "new"), "new", upgraded, can_undo=False),
    "forget": Command(("forget", "cp"), "cp", rewound, can_undo=False),
    "backup": Command(("backup", "cp", "repo"), "repo", can_undo=False),
}


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path, killed: Killed) -> Callable[[], Place]:
    numbers = iter(range(10_000))
    if request.param == "local":
        return lambda: Place(killed, str(tmp_path / str(next(numbers))))
    server = request.getfixturevalue("s3")
    return lambda: Place(killed, server.place("sigkill"), server.storage_options)


def blocked(found: Tree) -> bool:
    return any(data.startswith(BLOCK) for data in found.values())


def same(found: Tree, wanted: Tree) -> bool:
    """A new query id is made from the place's name, and a snapshot has the time in its own."""
    return set(found) == set(wanted) and all(
        data == wanted[path] for path, data in found.items() if path != "metadata"
    )


def deaths() -> Iterator[Any]:
    """One of each command on a disk, one of some on S3, where each takes seconds; or all."""
    whole = (pytest.mark.soak, pytest.mark.timeout(3600))
    for name in COMMANDS:
        yield pytest.param("local", name, 1, id=f"local-{name}-one-death")
        if name in ("upgrade", "rewind", "backup"):
            on_s3 = pytest.mark.services
            yield pytest.param("s3", name, 1, id=f"s3-{name}-one-death", marks=on_s3)
        for kind in ("local", "s3"):
            yield pytest.param(kind, name, None, id=f"{kind}-{name}-every-death", marks=whole)


@pytest.mark.parametrize(("places", "name", "chosen"), [*deaths()], indirect=["places"])
def test_sigkill(
    places: Callable[[], Place],
    name: str,
    chosen: int | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = COMMANDS[name]
    whole = places()
    command.prepare(whole)
    before = whole.tree(command.changed)
    result = whole.run(0, *command.words)
    assert result.status == 0, result.err
    changes = result.changes
    wanted = whole.tree(command.changed)
    everything = range(1, changes + 1)
    for at in random.Random(7).sample(everything, chosen) if chosen else everything:
        for going_on in ("repeat", "undo") if command.can_undo else ("repeat",):
            place = places()
            command.prepare(place)
            died = place.run(at, *command.words)
            assert died.status == -signal.SIGKILL, (at, died.err)
            left = place.tree(command.changed)
            assert blocked(left) or same(left, before) or same(left, wanted), (at, set(left))
            if command.changed == "new":  # the old one is not touched
                assert place.tree("cp") == whole.tree("cp")
            if going_on == "repeat":
                repeated(place, name, at)
                assert same(place.tree(command.changed), wanted), at
            else:
                taken_back(place, command)
                assert same(place.tree(command.changed), before), at
    if not chosen:
        with capsys.disabled():
            kind = "S3" if whole.options else "a local disk"
            times = 2 if command.can_undo else 1
            print(
                f"\n  {name} on {kind}: {changes} changes, {times * changes} times SIGKILL", end=""
            )


def repeated(place: Place, name: str, at: int) -> None:
    if name == "backup":
        api.backup(place.at("cp"), place.at("repo"), carrying=place.go)
        assert api.check_backups(place.at("repo"), place.options)[1] == (), at
        return
    result = place.run(0, *COMMANDS[name].words)
    # An undo or a forget that died at its very end has left nothing to do.
    gone = name.startswith(("undo", "forget")) and result.status in (1, 3)
    assert result.status == 0 or gone, (at, result.err)
    if name == "forget":
        kept = open_files(place.at("cp"), place.options).list("_floodmark/kept").files
        assert kept == (), at


def taken_back(place: Place, command: Command) -> None:
    # It may have died before it had written down that it began.
    with contextlib.suppress(NoAnswer, CannotRead):
        api.undo(place.at(command.changed), carrying=place.go)
