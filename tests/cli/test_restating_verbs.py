"""`floodmark repartition` and `floodmark convert`, as a shell calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.main import run

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def cp(tmp_path: Path) -> str:
    return str(shutil.copytree(GOLDEN / "4.2/sales-hdfs/checkpoint", tmp_path / "cp"))


def _plan(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_plan_and_then_the_change(
    cp: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, saved = str(tmp_path / "new"), str(tmp_path / "plan.json")
    asked = ["repartition", cp, new, "--partitions", "3"]
    assert run([*asked, "--json", "--out", saved]) == 0
    answer = _plan(capsys)
    assert answer["executed"] is False
    assert "rewrite-state" in [step["do"] for step in answer["plan"]["steps"]]
    assert not Path(new).exists()
    assert run(["apply", saved]) == 0
    capsys.readouterr()
    assert run(["state", new, "--stats", "--json"]) == 0
    assert len(_plan(capsys)["partitions"]) == 3
    assert run(["diff", cp, new, "--json"]) == 1  # the settings differ, and the state does not
    assert not _plan(capsys).get("state")
    assert run([*asked, "--execute"]) == 0
    assert "already" in capsys.readouterr().out
    assert run(["undo", new, "--execute"]) == 0
    assert not list(Path(new).rglob("*.snapshot"))


def test_the_plan_in_words(cp: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", cp, str(tmp_path / "new"), "--provider", "rocksdb"]) == 0
    words = capsys.readouterr().out
    assert "rewrite-state" in words
    assert "Nothing has been changed" in words


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["repartition", "CP", "NEW"], 2, "--partitions"),
        (["repartition", "CP", "NEW", "--partitions", "0"], 2, "0"),
        (["repartition", "CP", "NEW", "--partitions", "many"], 2, "many"),
        (["repartition", "CP", "CP", "--partitions", "3"], 2, "same place"),
        (["repartition", "CP", "NEW", "--partitions", "2"], 1, "already"),
        (["repartition", "NEW", "NEW2", "--partitions", "2"], 3, "no such file"),
        (["repartition", "CP", "NEW", "--partitions", "3", "--out", "no/p"], 2, "'no/p' cannot"),
        (["repartition", "CP", "NEW", "--partitions", "3", "--out", "."], 2, "'.' cannot"),
        (["convert", "CP", "NEW"], 2, "--provider"),
        (["convert", "CP", "NEW", "--provider", "memory"], 2, "memory"),
        (["convert", "CP", "NEW", "--provider", "hdfs"], 1, "its state in HDFS files already"),
        (["convert", "CP", "NEW", "--provider", "hdfs", "--state-format", "2"], 2, "only RocksDB"),
        (["convert", "CP", "NEW", "--provider", "rocksdb", "--state-format", "9"], 2, "9"),
    ],
)
def test_bad_input_is_named(
    arguments: list[str],
    status: int,
    words: str,
    cp: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"CP": cp, "NEW": str(tmp_path / "new"), "NEW2": str(tmp_path / "new2")}
    assert run([places.get(word, word) for word in arguments] + ["--execute"]) == status
    shown = capsys.readouterr()
    assert words in shown.err
    assert "Traceback" not in shown.err
    assert not (tmp_path / "new").exists()
