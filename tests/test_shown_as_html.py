"""What notebooks show of a result: tables, bounded, and with a stranger's text escaped."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.drills.sink_difference import compare_sinks, point_result
from floodmark.engine.drill.drill import Drill
from floodmark.rules.finding import Finding, Severity
from floodmark.rules.restarts.reason import Judgement, Reason, Verdict
from floodmark.screen import LINES, Shown, ShownByFields, ShownInALine

GOLDEN = Path(__file__).parent / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
SCRIPT = "<script>alert(1)</script>"


def html(value: Any) -> str:
    text = value._repr_html_()
    assert isinstance(text, str)
    assert "<script" not in text
    return text


def test_a_finding_and_a_verdict() -> None:
    finding = Finding("FM104", "empty", Severity.ERROR, SCRIPT, None, SCRIPT, "w", "d", True)
    assert "&lt;script&gt;" in html(finding)
    assert "error" in html(finding)
    reason = Reason("FM322", "changed", Verdict.NEEDS_MIGRATION, SCRIPT, "state/0", "why", "do")
    told = html(Judgement(Verdict.NEEDS_MIGRATION, "rules", (reason,), (SCRIPT,), "floodmark x"))
    assert "needs-migration, by rules" in told
    assert "floodmark x" in told


def test_a_checkpoint_its_state_and_a_plan(tmp_path: Path) -> None:
    place = tmp_path / f"a{SCRIPT.replace('/', '')}"
    shutil.copytree(GOLDEN, place)
    assert "batch 3" in html(floodmark.open(str(place)))
    assert "<th style='text-align:left'>value.sum</th>" in html(floodmark.read_state(str(place)))
    change = floodmark.upgrade(str(place), str(tmp_path / "new"))
    assert "Nothing has been changed. Carry it out with .apply()" in html(change)
    assert "copy" in html(change)
    assert "upgrade" in html(change.plan)
    assert "2026-11-15 09:19:23 UTC" in html(floodmark.offsets(str(place)))
    assert "structured-streaming" in html(floodmark.inspect(str(place)))
    assert "keys" in html(floodmark.read_state(str(place)).stats())


def test_their_types_are_names_of_the_package(tmp_path: Path) -> None:
    place = str(GOLDEN)
    change = floodmark.upgrade(place, str(tmp_path / "new"))
    assert isinstance(change, floodmark.Change)
    assert isinstance(change.plan, floodmark.Plan)
    assert isinstance(floodmark.inspect(place), floodmark.Inspection)
    assert isinstance(floodmark.read_state(place), floodmark.StateView)
    assert isinstance(floodmark.open(place).batches[0], floodmark.Batch)
    assert isinstance(floodmark.explain("FM104")[0], floodmark.Rule)
    assert (floodmark.Finding, floodmark.Verdict) == (Finding, Verdict)


def test_a_long_list_is_cut_and_says_so() -> None:
    findings = Shown(
        Finding("FM104", "empty", Severity.ERROR, f"offsets/{n}", None, "", "", "", True)
        for n in range(100)
    )
    text = html(findings)
    assert text.count("<tr>") == LINES + 1
    assert "75 more of 100" in text
    assert html(Shown(())) == "<p>nothing</p>"


REPORTS = (
    "api.pipelines.PipelineFlows",
    "checkpoint.views.inspection.Inspection",
    "connectors.behind.Lag",
    "engine.bisect.bisect.BisectReport",
    "engine.demo.story.Story",
    "engine.drill.drill.Drill",
    "engine.proof.compare.CodeComparison",
    "engine.proof.replay.Replay",
    "engine.run.stream.RunReport",
    "statestore.diff.StateDiff",
    "statestore.dstreams.DStreamState",
)


@pytest.mark.parametrize("name", REPORTS)
def test_reports_show_themselves(name: str) -> None:
    from importlib import import_module

    module, _, kind = name.rpartition(".")
    report = getattr(import_module(f"floodmark.{module}"), kind)
    assert callable(report._repr_html_)
    assert report.__repr__.__module__.startswith("floodmark.")
    for base in ShownByFields, ShownInALine:  # a dataclass without repr=False has another text
        assert report.__repr__ is base.__repr__ or not issubclass(report, base)


def test_what_every_verb_gives_shows_itself() -> None:
    """Each is tried here or above; tuples are `Shown`, which tests/test_api_keywords.py tries."""
    known = {name.rpartition(".")[2] for name in REPORTS}
    known |= {"Change", "OpenCheckpoint", "Judgement", "StateView", "Position"}
    given = {
        kind
        for name in floodmark.__all__
        if inspect.isfunction(verb := getattr(floodmark, name))
        for kind in str(inspect.signature(verb).return_annotation).split(" | ")
        if "[" not in kind and kind not in ("str", "None", "Any")
    }
    assert given - known == set()
    assert len(given) > 10


def test_a_drill_shows_its_points() -> None:
    points = (point_result("after-sink", 1, {SCRIPT: compare_sinks([{"id": 1}], [])}),)
    found = Drill(SCRIPT, False, (), (), None, None, "", 1, 0, 1, points, (SCRIPT,))
    assert "after-sink" in html(found)
    assert "&lt;script&gt;" in html(found)
