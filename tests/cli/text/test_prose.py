"""Sentences are broken at a terminal's width; what is pasted stays in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from floodmark.cli.text import prose as module
from floodmark.cli.text.prose import prose
from terminals import on_a_terminal

LONG = "Spark deletes old entries of the log, so the position of this batch is not known any more."
COMMAND = "`floodmark upgrade /data/a checkpoint /data/new --without-state`"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_columns", lambda err: 50)


def test_a_sentence_fits_and_loses_nothing(narrow: None) -> None:
    lines = prose(LONG, "  ")
    assert len(lines) > 1
    assert all(len(line) <= 50 and line.startswith("  ") for line in lines)
    assert " ".join(line.strip() for line in lines) == LONG


@pytest.mark.parametrize(
    "kept",
    [
        COMMAND,
        "--accept hashed-by-all-keys",
        "'/data/a folder with spaces/of checkpoints'",
    ],
)
@pytest.mark.parametrize("before", range(0, 50, 7))
def test_nothing_that_is_pasted_is_broken(narrow: None, kept: str, before: int) -> None:
    lines = prose(f"{LONG[:before]} {kept} {LONG}", "  ")
    assert any(kept in line for line in lines)


def test_a_command_alone_and_one_after_a_colon_stay_whole(narrow: None) -> None:
    command = "floodmark upgrade /data/checkpoint /data/new --without-state --execute"
    assert prose(command, "  ") == [f"  {command}"]
    install = "pip install 'floodmark[spark,state,kafka,delta]'"
    assert prose(f"This is not part of the base install. Install it with: {install}")[-1].endswith(
        install
    )


def test_an_error_fits_the_terminal_and_is_one_line_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "from floodmark.cli.main import show_error; from floodmark.errors import WrongUse;"
        f"show_error(WrongUse('wrong', {LONG!r}, {LONG!r}))"
    )
    seen = on_a_terminal([sys.executable, "-c", code], tmp_path, 60).replace("\r\n", "\n")
    assert all(len(line) <= 60 for line in seen.splitlines())
    assert len(seen.splitlines()) == 5
    assert prose(LONG) == [LONG], "no terminal"
