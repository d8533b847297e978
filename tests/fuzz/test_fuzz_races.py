"""Folders that become links while a command runs: nothing is read or changed through them.

Another thread exchanges parts of a checkpoint for a link to a bait folder, and back, some thousand
times a second. Linux has a call that exchanges two names at once.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from fuzz_places import CLOCK, GOLDEN, LONG_AGO

from floodmark.cli.main import run

Capture = pytest.CaptureFixture[str]
SECONDS = 4.0
SECRET = b"ssh-rsa SECRET"
PARTS = (
    *("offsets", "commits", "metadata", "offsets/2", "state", "state/0", "state/0/0"),
    *("state/0/0/3.delta", "sources/0", "_floodmark", "_floodmark/journal", "_floodmark/kept"),
)
ACCEPTED = "--accept out-of-reach --accept skips --accept maybe-running --execute"
COMMANDS = (
    "compact {cp} --keep 1 --accept maybe-running --execute",
    f"rewind {{cp}} --to-batch 1 {ACCEPTED}",
    "repair {cp} --read-data --accept maybe-running --execute",
    "undo {cp} --accept maybe-running --execute",
    "forget {cp} --execute",
    "backup {cp} {repo} --execute",
    "copy {cp} {new} --execute",
    "upgrade {cp} {new} --execute",
    "doctor {cp} --read-data",
    "state {cp}",
)


class Exchanger:
    def __init__(self, folder: Path, link: Path) -> None:
        self._folder, self._link = folder, link
        self._exchange = ctypes.CDLL(None).renameat2
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.count = 0

    def __enter__(self) -> Exchanger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _work(self) -> None:
        chance = Random(7)
        while not self._stopped.is_set():
            part = os.fsencode(self._folder / chance.choice(PARTS))
            for _ in range(2):  # there and back
                self._exchange(-100, part, -100, os.fsencode(self._link), 2)
                self._stopped.wait(0.0003)
            self.count += 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = sys.getswitchinterval()
    monkeypatch.setattr("time.sleep", CLOCK.sleep)
    sys.setswitchinterval(0.0002)
    yield
    sys.setswitchinterval(before)


def _fresh(place: Path) -> None:
    for name in ("cp", "new", "repo"):
        shutil.rmtree(place / name, ignore_errors=True)
    (place / "link").unlink(missing_ok=True)
    shutil.copytree(GOLDEN / "4.2/sales-hdfs/checkpoint", place / "cp")
    for name in ("journal", "kept"):
        (place / "cp/_floodmark" / name).mkdir(parents=True)
    (place / "link").symlink_to(place / "home")
    for path in (place / "cp").rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def _seen(folder: Path) -> list[tuple[str, int, int, bytes]]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [
        (str(path), path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        for path in files
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names at once")
@pytest.mark.usefixtures("impatient")
def test_nothing_goes_through_a_link_that_comes_while_a_command_runs(
    tmp_path: Path, capsys: Capture
) -> None:
    for name in ("thesis.txt", "0", "1", "2", "1.delta", "3.delta", "metadata", "x/0/3.delta"):
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / name).write_bytes(SECRET)
    before = _seen(tmp_path / "home")
    places = {name: str(tmp_path / name) for name in ("cp", "new", "repo")}
    chance, ran, exchanged = Random(7), 0, 0
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        _fresh(tmp_path)
        with Exchanger(tmp_path / "cp", tmp_path / "link") as exchanger:
            for command in chance.sample(COMMANDS, 5):
                status = run([part.format(**places) for part in command.split(" ")])
                printed = "".join(capsys.readouterr())
                assert 0 <= status < 6, (command, printed)
                assert SECRET.decode() not in printed, command
                ran += 1
        exchanged += exchanger.count
        assert _seen(tmp_path / "home") == before
        for name in ("cp", "new", "repo"):
            for path in (tmp_path / name).rglob("*"):
                assert path.is_symlink() or not path.is_file() or SECRET not in path.read_bytes()
    assert min(ran, exchanged) >= 5
