"""Standard output that breaks, fills or stands never stops a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from floodmark.engine.run.output import unbreakable_output


def written_to(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(descriptor, "w", closefd=False) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with unbreakable_output():
            for _ in range(40):
                print("x" * 3000, file=sys.stderr, flush=True)


def test_a_reader_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    written_to(writer, monkeypatch)
    os.write(writer, b"nobody reads it, and nothing is raised")
    os.close(writer)


def test_a_pipe_that_nobody_empties_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    written_to(writer, monkeypatch)
    os.close(writer)
    with open(reader, "rb") as pipe:
        assert 0 < len(pipe.read()) < 40 * 3000


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    written_to(full, monkeypatch)
    os.close(full)


def test_what_can_be_written_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = os.open(path, os.O_WRONLY | os.O_CREAT)
    written_to(log, monkeypatch)
    os.close(log)
    assert path.read_text() == ("x" * 3000 + "\n") * 40
