"""Storage that fails in the middle: no room, no permission, a network that drops.

The failures are the system's own. Afterwards the old checkpoint is whole, the words say
what to do, and doing it leads to the end.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import samples
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.errors import FloodmarkError
from floodmark.storage.files import open_files

if TYPE_CHECKING:
    from services.s3 import S3Server

BIG = {"state/0/0/1.delta": os.urandom(200_000)}
ROOM = 100_000
SET_PRIVILEGES = shutil.which("setpriv")


def old(cp: Path) -> Path:
    """As if the query had stopped long ago."""
    for path in cp.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return cp


def tree(folder: Path) -> samples.Tree:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "_floodmark" not in path.parts
    }


def floodmark(
    status: int, *arguments: str, prefix: tuple[str, ...] = (), room: int | None = None
) -> str:
    """What the command said on its way to a status."""

    def limit() -> None:
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    code = "import sys; from floodmark.cli.main import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_no_room(tmp_path: Path) -> None:
    cp = old(samples.write(tmp_path / "cp", samples.sales(batches=3) | BIG))
    before, new = tree(cp), tmp_path / "new"
    # A link needs no room: backups copy.
    said = floodmark(5, "backup", str(cp), str(new), "--execute", room=ROOM)

    assert "too large" in said
    assert "Repeat it" in said
    assert tree(cp) == before
    go = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
    api.backup(str(cp), str(new), carrying=go)
    api.restore(str(new), str(tmp_path / "again"), carrying=go)
    assert tree(tmp_path / "again") == before


@pytest.mark.skipif(
    os.geteuid() == 0 and SET_PRIVILEGES is None, reason="root may write anywhere, and keeps to it"
)
def test_no_permission(tmp_path: Path) -> None:
    cp = old(samples.write(tmp_path / "cp", samples.sales(batches=5)))
    before = tree(cp)
    mortal = (
        (str(SET_PRIVILEGES), "--bounding-set=-dac_override", "--inh-caps=-dac_override")
        if os.geteuid() == 0
        else ()
    )
    cp.chmod(0o500)
    try:
        said = floodmark(4, "rewind", str(cp), "--to-batch", "1", "--execute", prefix=mortal)
    finally:
        cp.chmod(0o700)

    assert "ermission denied" in said
    assert tree(cp) == before
    assert api.inspect(str(cp)).committed_batch == 3


class Line:
    """A network between here and a port, which can be cut."""

    def __init__(self, port: int) -> None:
        self.requests_left: int | None = None
        self._goal = ("127.0.0.1", port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(caller,), daemon=True).start()

    def _connect(self, caller: socket.socket) -> None:
        with caller, socket.create_connection(self._goal) as goal:
            back = threading.Thread(target=self._pass, args=(goal, caller), daemon=True)
            back.start()
            self._pass(caller, goal, counted=True)

    def _pass(self, source: socket.socket, goal: socket.socket, counted: bool = False) -> None:
        try:
            while data := source.recv(65536):
                if counted and data.startswith((b"PUT ", b"DELETE ")) and not self._may():
                    break
                goal.sendall(data)
        except OSError:
            pass
        for end in (source, goal):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def _may(self) -> bool:
        if self.requests_left is None:
            return True
        self.requests_left -= 1
        return self.requests_left >= 0


@contextmanager
def line_to(port: int) -> Iterator[Line]:
    line = Line(port)
    try:
        yield line
    finally:
        line.close()


@pytest.mark.services
def test_a_network_that_drops(s3: S3Server, tmp_path: Path) -> None:
    cp = old(samples.write(tmp_path / "cp", samples.sales(batches=3)))
    before = tree(cp)
    place = s3.place("dropped")
    with line_to(s3.port) as line:
        storage = s3.storage_options | {
            "endpoint_url": f"http://127.0.0.1:{line.port}",
            "config_kwargs": {"retries": {"max_attempts": 1}},
        }
        go = Carrying(True, storage=storage, clock=Clock(pause=lambda seconds: None))
        line.requests_left = 5
        with pytest.raises(FloodmarkError) as caught:
            api.copy(str(cp), place, carrying=go)
        assert caught.value.status == 5
        assert caught.value.do
        assert tree(cp) == before

        line.requests_left = None
        api.copy(str(cp), place, carrying=go)

    found = open_files(place, s3.storage_options)
    paths = [file.path for file in found.list().files if not file.path.startswith("_floodmark/")]
    assert dict(found.read_many(paths)) == before
