"""Each finding that can be mended prints the command that mends it, which works as it is pasted."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import click
import pytest

import floodmark
from broken.meeting import meeting, operator
from examples import BROKEN, example, golden
from floodmark.cli.main import floodmark as program
from floodmark.cli.main import run
from floodmark.rules.finding import Rule
from floodmark.rules.registry import rules_of
from floodmark.rules.restarts.verdict import judge_restart

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


def test_a_gap_is_looked_at_with_its_own_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = damaged("commit-gap", tmp_path / "it's here")
    (finding, *_) = floodmark.doctor(str(place))
    command = re.search(r"`(floodmark offsets [^`]+)`", finding.do)
    assert command is not None
    assert run(shlex.split(command[1])[1:]) == 0, capsys.readouterr().err


def test_a_refusal_and_a_change_end_with_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = damaged("commits-ahead", tmp_path / "it's here")
    assert run(["repair", str(place), "--execute"]) == 4
    *_, again = capsys.readouterr().err.strip().splitlines()
    accepted = shlex.split(again)
    assert accepted == ["floodmark", "repair", str(place), "--execute", "--accept", "repeats"]
    assert run(accepted[1:]) == 0
    *_, done = capsys.readouterr().out.strip().splitlines()
    undo = shlex.split(done[done.index("floodmark ") :])
    assert undo == ["floodmark", "undo", str(place)]
    assert run(undo[1:]) == 0


def test_a_saved_plan_is_accepted_where_it_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = damaged("commits-ahead", tmp_path / "checkpoint")
    plan = str(tmp_path / "it's a plan.json")
    assert run(["repair", str(place), "--out", plan]) == 0
    *_, again = capsys.readouterr().out.strip().splitlines()
    options = shlex.split(again.partition("Plan it again with ")[2])
    assert options == ["--accept", "repeats", "--out", plan]
    assert run(["apply", plan]) == 4
    told = capsys.readouterr().err
    assert "Plan it again with --accept repeats" in told
    assert "floodmark apply" not in told


def parse(command: str) -> None:
    """As a shell and floodmark take it apart; nothing is run."""
    _, verb, *arguments = shlex.split(command)
    context = click.Context(program)
    found = program.get_command(context, verb)
    assert found is not None, command
    found.make_context(verb, arguments, parent=context)


def told_commands(words: str) -> list[str]:
    """Whole commands in what is told: in backquotes with arguments, or on a line of their own."""
    quoted = re.findall(r"`(floodmark [a-z-]+ [^`]+)`", words)
    return quoted + re.findall(r"^(floodmark .+)$", words, re.M)


@pytest.mark.parametrize("rule", rules_of("compatibility"), ids=lambda known: known.rule.name)
def test_every_command_of_check_is_one(rule: object) -> None:
    known = rule.rule  # type: ignore[attr-defined]
    found = example("compatibility", known.name.replace("-", "_")).MEETING
    judgement = judge_restart(replace(found, application=("jobs/app.py",)))
    given = [] if judgement.command is None else [judgement.command]
    for one in judgement.reasons:
        given += told_commands(one.do)
    for command in given:
        assert not {"CP", "NEW", "APP.py"} & {*command.split()}
        parse(command)
    assert (judgement.then is None) is (judgement.command is None)
    if judgement.verdict.value == "needs-new-checkpoint" and "state" in known.name:
        assert given


NEW = {"operators": (operator(value="sum double, count long, max long"),)}


def test_the_new_checkpoint_is_the_one_that_the_code_names() -> None:
    named = judge_restart(meeting(new=NEW, code_checkpoint="/ck-2", code_checkpoint_is_free=True))
    assert named.command == "floodmark migrate /ck /ck-2 --app APP.py"
    assert named.then == "Then start APP.py; its code names the checkpoint /ck-2."


def test_code_that_names_the_old_checkpoint_has_to_name_the_new_one() -> None:
    same = judge_restart(meeting(new=NEW, code_checkpoint="/ck"))
    assert same.command == "floodmark migrate /ck /ck-new --app APP.py"
    assert same.then == "Then change the checkpoint of APP.py from /ck to /ck-new, and start it."
    untold = judge_restart(meeting(new=NEW))
    assert untold.then == "Then start APP.py with the checkpoint /ck-new."
