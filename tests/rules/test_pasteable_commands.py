"""Each finding that can be mended prints the command that mends it, which works as it is pasted."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

import floodmark
from examples import BROKEN, golden
from floodmark.cli.main import run
from floodmark.rules.finding import Rule
from floodmark.rules.registry import rules_of

MENDED = [known.rule for known in rules_of("checkpoint") if known.rule.mends]


def module(name: str) -> Path:
    return BROKEN / "checkpoint" / f"{name.replace('-', '_')}.py"


@pytest.fixture(autouse=True)
def not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.changes.in_use._movement", lambda *_: None)


def damaged(name: str, folder: Path) -> Path | None:
    """The rule's broken example in a folder; None where it is no folder's own trouble."""
    import importlib

    example = importlib.import_module(f"broken.checkpoint.{name.replace('-', '_')}")
    if not hasattr(example, "damage") or not isinstance(getattr(example, "FROM", None), str):
        return None
    tree = dict(golden(example.FROM))
    example.damage(tree)
    for path, data in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        os.utime(folder / path, (1_700_000_000, 1_700_000_000))
    return folder


def commands(told: str) -> list[list[str]]:
    """Every line that is a command alone, as a shell takes it apart."""
    found = re.findall(r"^ +(?:do   )?(floodmark (?:repair|compact) .+)$", told, re.M)
    return [shlex.split(line)[1:] for line in found]


@pytest.mark.parametrize("rule", MENDED, ids=lambda rule: rule.name)
def test_the_command_of_a_finding_works_as_it_is_pasted(
    rule: Rule,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = damaged(rule.name, tmp_path / "a folder's name")
    if place is None:
        assert rule.name in WITHOUT_A_FOLDER
        return
    found = [one for one in floodmark.doctor(str(place), read_data=True) if one.rule == rule.name]
    if not found:
        assert rule.name in WITHOUT_A_FOLDER
        return
    capsys.readouterr()
    assert run(["doctor", str(place), "--read-data"]) in (0, 1)
    told = capsys.readouterr().out
    given = commands(told)
    if not given:
        assert rule.name in WITH_A_BACKUP
        assert "--from-backup REPO" in " ".join(told.split())
    for arguments in given:
        assert str(place) in arguments, arguments
        assert run(arguments) in (0, 1, 4), capsys.readouterr().err
        assert "Usage:" not in capsys.readouterr().err


# What shows itself only beside a table: tests/connectors has it, with its command.
WITHOUT_A_FOLDER = {"iceberg-start-expired"}
# Only a backup mends it, and only the user knows where that is.
WITH_A_BACKUP = {"state-gone"}


def test_a_command_in_json_is_the_same(tmp_path: Path) -> None:
    place = damaged("empty-log-entry", tmp_path / "it's here")
    (finding, *_) = floodmark.doctor(str(place))
    command = re.match(r"`(floodmark [^`]+)`", finding.do)
    assert command is not None
    assert shlex.split(command[1]) == ["floodmark", "repair", str(place)]
