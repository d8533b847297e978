"""Commands whose work can be counted tell how far they have come, on a terminal alone."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodmark import progress
from floodmark.cli.main import run
from floodmark.cli.waiting import come_so_far
from terminals import on_a_terminal

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
Told = list[tuple[str, int | None, int | None]]


@pytest.fixture
def told() -> Iterator[Told]:
    found: Told = []
    progress.listen(lambda *one: found.append(one))
    yield found
    progress.listen(None)


@pytest.mark.parametrize(
    ("arguments", "work"),
    [
        (["doctor", "sales-hdfs", "--read-data"], "state files"),
        (["doctor", "sales-rocksdb", "--read-data"], "partitions of state"),
        (["state", "sales-hdfs", "--export", "state.parquet"], "partitions"),
        (["state", "sales-rocksdb", "--export", "state.parquet"], "partitions"),
        (["backup", "sales-hdfs", "repository", "--execute"], "files"),
        (["copy", "sales-hdfs", "new", "--execute"], "steps"),
        (["copy", "sales-hdfs", "new", "--execute", "--read-data"], "copies compared"),
        (["repartition", "sales-hdfs", "new", "--partitions", "3", "--execute"], "steps"),
        (
            ["repartition", "sales-hdfs", "new", "--partitions", "3", "--execute"],
            "partitions of state",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_can_be_counted_is(
    arguments: list[str],
    work: str,
    told: Told,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("floodmark.changes.in_use._movement", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / arguments[1] / "checkpoint", tmp_path / arguments[1])
    assert run(arguments) == 0
    counts = [(done, total) for one, done, total in told if one == work]
    assert counts
    for done, total in counts:
        assert done is not None
        assert total is not None
        assert 0 <= done <= total


def test_checkpoints_are_counted_as_they_are_found(told: Told) -> None:
    assert run(["scan", str(GOLDEN / "sales-hdfs"), str(GOLDEN / "kafka")]) == 0
    assert [one for one in told if one[0] == "checkpoints"] == [
        ("checkpoints", 1, None),
        ("checkpoints", 2, None),
    ]


def test_how_far_it_has_come_in_words() -> None:
    assert come_so_far("files", 1_024, 2_048) == "[##########----------] 1,024 of 2,048 files"
    assert come_so_far("files", 0, 3) == "[--------------------] 0 of 3 files"
    assert come_so_far("checkpoints", 12, None) == "12 checkpoints"
    assert come_so_far("Spark is starting", None, None) == "Spark is starting"


CODE = """
import time
from floodmark.cli.main import _waiting
from floodmark.cli.text import echo, say
from floodmark.progress import counted
with _waiting("doctor"):
    for number in counted([1, 2], "files"):
        time.sleep(2)
        say(f"file {number}")
    echo("done")
"""


def test_on_a_terminal_a_bar_stands_below_what_is_said() -> None:
    shown = on_a_terminal([sys.executable, "-c", CODE])
    assert re.search(r"doctor: \[##########----------\] 1 of 2 files, [1-9] s\r", shown)
    assert "\r\x1b[Kfile 2\r\n" in shown
    assert shown.endswith("\r\x1b[Kdone\r\n")


def test_in_a_pipe_nothing_of_it_is_written() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("done\n", "file 1\nfile 2\n")
