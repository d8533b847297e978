"""The command itself, killed by the system in the middle of its work."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import samples
from floodmark import api
from floodmark.changes.belonging import belongs
from floodmark.changes.fingerprint import BLOCK

KILLED = Path(__file__).with_name("killed.py")
LONG_AGO = 1_700_000_000
WHOLE = pytest.param(None, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="every-death")
SHORT = pytest.param(2, id="some-deaths")


def floodmark(at: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(KILLED), str(at), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def prepared(folder: Path) -> Path:
    samples.write(folder / "cp", samples.sales(batches=3))
    for path in (folder / "cp").rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))  # stopped long ago: nobody watches it
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if belongs(name)}


def blocked(found: dict[str, bytes]) -> bool:
    return any(data.startswith(BLOCK) for data in found.values())


COMMANDS = {
    "upgrade": (["upgrade", "cp", "new"], "new"),
    "rewind": (["rewind", "cp", "--to-batch", "0"], "cp"),
    "copy": (["copy", "cp", "new"], "new"),
}


@pytest.mark.parametrize("chosen", [SHORT, WHOLE])
@pytest.mark.parametrize("name", COMMANDS)
def test_sigkill(
    name: str, chosen: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, changed = COMMANDS[name]

    def command(folder: Path) -> list[str]:
        return [str(folder / w) if w in ("cp", "new") else w for w in words] + ["--execute"]

    whole = prepared(tmp_path / "whole")
    before = tree(whole / changed)
    result = floodmark(0, *command(whole))
    assert result.returncode == 0, result.stderr
    changes = int(result.stdout.splitlines()[-1])
    wanted = set(tree(whole / changed))
    everything = range(1, changes + 1)
    deaths = random.Random(7).sample(everything, chosen) if chosen else everything
    for at in deaths:
        folder = prepared(tmp_path / str(at))
        assert floodmark(at, *command(folder)).returncode == -signal.SIGKILL
        left = tree(folder / changed)
        assert blocked(left) or left == before or set(left) == wanted, at
        repeated = floodmark(0, *command(folder))
        assert repeated.returncode == 0, (at, repeated.stderr)
        assert set(tree(folder / changed)) == wanted, at
        assert api.inspect(str(folder / changed)).unreadable == ()
    if not chosen:
        with capsys.disabled():
            print(f"\n  {name}: SIGKILL before each of {changes} changes of the disk", end="")
