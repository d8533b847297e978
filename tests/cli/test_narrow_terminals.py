"""What is printed to a terminal of 80 columns: tables fit, and no value is cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
COLUMNS = 80


def printed(arguments: list[str], cwd: Path) -> str:
    """The text that a terminal of 80 columns gets, without its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    code = "from floodmark.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        process.wait(timeout=60)
    os.close(ours)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize(
    "command",
    [
        "inspect join/checkpoint",
        "inspect kafka/checkpoint",
        "batches kafka/checkpoint",
        "batches delta/checkpoint",
        "batches union/checkpoint",
        "files files/checkpoint",
        "diff sales-hdfs/checkpoint sales-rocksdb/checkpoint --no-state",
        "scan .",
        "state windowed/checkpoint",
        "upgrade sales-hdfs/checkpoint new",
        "copy sales-hdfs/checkpoint new",
        "compact sales-hdfs/checkpoint",
        "doctor sales-hdfs/checkpoint",
        "watch sales-hdfs/checkpoint --once",
        "explain FM104",
        "explain --all",
        "--help",
        "rewind --help",
    ],
)
def test_a_table_fits_the_terminal(command: str) -> None:
    text = printed(command.split(), GOLDEN)
    assert "should not happen" not in text
    assert text.strip()
    assert [line for line in text.splitlines() if len(line) > COLUMNS] == []


def test_no_value_is_cut() -> None:
    command = "diff sales-hdfs/checkpoint sales-rocksdb/checkpoint --no-state"
    words = printed(command.split(), GOLDEN).split()
    for part in ("providerClass", "HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"):
        assert any(word.endswith(part) for word in words)


def test_elsewhere_lines_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets one line a row, however long."""
    from floodmark.cli.main import run

    assert run(["batches", str(GOLDEN / "kafka" / "checkpoint")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
