"""What is printed to a terminal of 80 columns: tables fit, and no value is cut."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from terminals import on_a_terminal

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
COLUMNS = 80


def printed(arguments: list[str], cwd: Path) -> str:
    """The text that a terminal of 80 columns gets, without its colours."""
    code = "from floodmark.cli.main import main; main()"
    text = on_a_terminal([sys.executable, "-c", code, *arguments], cwd, COLUMNS)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text).replace("\r\n", "\n")


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
