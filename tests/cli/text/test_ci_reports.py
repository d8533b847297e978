"""Findings in the forms that CI systems take, and the files that call floodmark there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
import yaml

from floodmark.cli.main import floodmark, run
from floodmark.cli.text import ci_reports
from floodmark.rules.finding import Finding, Severity
from floodmark.rules.restarts.reason import Judgement, Reason, Verdict

ROOT = Path(__file__).parents[3]
BAD = str(ROOT / "tests" / "broken" / "pipeline" / "misspelt_checkpoint_option.py")
TORN = str(ROOT / "tests" / "golden" / "4.2" / "sales-hdfs" / "checkpoint")


def test_gitlab_gets_a_code_quality_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", BAD, "--format", "gitlab"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {one["check_name"] for one in found} == {"misspelt-checkpoint-option (FM201)"}
    assert {one["severity"] for one in found} == {"critical"}
    assert all(one["location"]["lines"]["begin"] > 0 for one in found)
    assert len({one["fingerprint"] for one in found}) == len({one["description"] for one in found})


def test_junit_is_xml_in_which_errors_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", BAD, "--format", "junit"]) == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    cases = suite.findall("testcase")
    assert int(suite.attrib["tests"]) == len(cases) > 0
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure")) == len(cases)


def test_what_is_in_a_finding_cannot_end_the_xml() -> None:
    odd = '</failure>]]><x a="1">\x1b[31m\x00\ud800'
    found = Finding("FM101", "rule", Severity.ERROR, odd, 3, odd, odd, odd, False)
    text = ci_reports.junit([found])
    (case,) = ElementTree.fromstring(text).findall("testcase")
    assert case.find("failure") is not None
    assert len(list(case)) == 1
    json.dumps(ci_reports.gitlab([found]))


@pytest.mark.parametrize("form", ["github", "gitlab", "sarif", "junit"])
def test_doctor_of_a_sound_checkpoint_gives_an_empty_report(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", TORN, "--format", form]) == 0
    out = capsys.readouterr().out
    if form == "junit":
        assert ElementTree.fromstring(out).attrib["failures"] == "0"
    elif form != "github":
        assert json.loads(out) is not None
    assert run(["doctor", TORN, "--format", form, "--json"]) == 2


def test_a_verdict_is_told_by_its_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reasons = tuple(
        Reason("FM323", "aggregates-changed", verdict, "n is new", "state/0", "why", "do")
        for verdict in Verdict
    )
    judgement = Judgement(Verdict.NEEDS_MIGRATION, "rules", reasons)
    found = ci_reports.of_judgement(judgement, str(tmp_path / "code" / "app.py:sales"))
    assert {one.path for one in found} == {"code/app.py"}
    assert [one.severity.value for one in found] == [
        "advice",
        "advice",
        "warning",
        "error",
        "error",
    ]


def test_the_action_runs_what_it_says(tmp_path: Path) -> None:
    """Its second step, with a program in floodmark's place that tells how it was called."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    steps = action["runs"]["steps"]
    assert all("uses" not in step for step in steps), "nothing that a commit does not pin"
    assert all("${{" not in step["run"] for step in steps), "inputs are no part of a script"
    program = tmp_path / "floodmark" / "bin" / "floodmark"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 1\n')
    program.chmod(0o755)
    given = {
        "OUTLINE": "streams/a b.json",
        "APPLICATION": "app.py; echo no",
        "REHEARSE": "true",
        "FORMAT": "sarif",
        "REPORT": str(tmp_path / "report"),
        "ARGUMENTS": "--day\n2026-11-16 $(echo no)",
    }
    assert set(given) == set(steps[1]["env"])
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[1]["run"]],
        env={**os.environ, **given, "RUNNER_TEMP": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 1
    called = (tmp_path / "report").read_text().splitlines()
    assert called == [
        "check",
        "streams/a b.json",
        "app.py; echo no",
        "--format",
        "sarif",
        "--rehearse",
        "--",
        "--day",
        "2026-11-16 $(echo no)",
    ]
    _is_valid(called)


def test_the_gitlab_job_and_the_hooks_call_verbs_that_are_there() -> None:
    job = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".floodmark"]
    (line,) = (one for one in job["script"] if "floodmark check" in one)
    called = re.findall(r"bin/floodmark (.*) > floodmark\.json", line)[0].replace('"', "").split()
    _is_valid(called)
    assert job["artifacts"]["reports"]["codequality"] == "floodmark.json"
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {one["entry"] for one in hooks} == {"floodmark lint", "floodmark check"}


def _is_valid(arguments: list[str]) -> None:
    verb, *rest = arguments
    context = click.Context(floodmark)
    command = floodmark.get_command(context, verb)
    assert command is not None
    command.make_context(verb, rest, parent=context)
