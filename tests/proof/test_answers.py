"""What `replay`, `compare` and `drill` answer by their exit status, and in words: no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from floodmark import api
from floodmark.cli.compare import text as compared
from floodmark.cli.main import run
from floodmark.cli.text.render_replay import text
from floodmark.drills.sink_difference import compare_sinks, point_result
from floodmark.engine.drill.drill import Drill
from floodmark.engine.proof.compare import CodeComparison
from floodmark.engine.proof.replay import Replay, ReplayedBatch, StateCounts, _Replaying
from floodmark.engine.proof.replayed_state import StateMatch
from floodmark.engine.proof.row_diff import RowDifference

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
BATCH = ReplayedBatch(1, (), 0, (), StateCounts(0, 0, 0), (), 0, None, {}, True, (), "")
REPLAY = Replay("cp", "app.py", None, "none", (BATCH,))
ALIKE = CodeComparison("cp", 1, 2, "same", False, ("k",), 3, 0, 0, 0, (), (), ())
DRILL = Drill("app.py", True, ("json",), (), None, None, "there is none", 12, 0, 4, (), ())


OTHER, UNKNOWN = (replace(BATCH, matches_checkpoint=found) for found in (False, None))
ONE = ("cp", "--batch", "1")
BOTH = ("cp", "--old", "a.py", "--new", "b.py")
SAMPLE = ("app.py", "--input", "rows.jsonl")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize(
    ("verb", "arguments", "found", "status"),
    [
        ("replay", ONE, REPLAY, 0),
        ("replay", ONE, replace(REPLAY, batches=(OTHER,)), 1),
        ("replay", ("cp", "--batches", "1..2"), replace(REPLAY, batches=(OTHER, BATCH)), 1),
        ("replay", ONE, replace(REPLAY, batches=(UNKNOWN,)), 0),
        ("compare", BOTH, ALIKE, 0),
        ("compare", BOTH, replace(ALIKE, changed=1), 1),
        ("compare", BOTH, replace(ALIKE, only_old=1), 1),
        ("compare", BOTH, replace(ALIKE, only_new=1), 1),
        ("compare", BOTH, replace(ALIKE, columns_only_new=("n",)), 1),
        ("drill", SAMPLE, DRILL, 0),
        ("drill", SAMPLE, replace(DRILL, survived=False), 1),
    ],
)
def test_the_exit_status_is_the_answer(
    verb: str,
    arguments: tuple[str, ...],
    found: Any,
    status: int,
    as_json: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api, verb, lambda *_, **__: found)
    assert run([verb, *arguments, *as_json]) == status


def test_rows_that_came_too_late_are_counted_over_all_operators() -> None:
    class _Told(_Replaying):
        def _input(self, batch: int, progress: Any) -> Any:
            return ()

    checkpoint = SimpleNamespace(offsets={1: SimpleNamespace(metadata=None)})
    told = _Told(SimpleNamespace(checkpoint=checkpoint), None, None, None)  # type: ignore[arg-type]
    operators = [{"numRowsDroppedByWatermark": 2}, {"numRowsTotal": 7}]
    operators.append({"numRowsDroppedByWatermark": 1})
    ran = SimpleNamespace(progress={"stateOperators": operators, "durationMs": {"addBatch": 5}})
    one = told._report(1, ran, [], (), (), StateMatch(None, why="why"))  # type: ignore[arg-type]
    assert (one.late_rows, one.phases) == (3, {"addBatch": 5})
    shown = text(replace(REPLAY, batches=(one,)))
    assert "3 rows dropped" in shown
    assert "addBatch 5" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", str(GOLDEN), "--batch", "99", "--app", "app.py"],
        ["replay", str(GOLDEN), "--batches", "1..99", "--app", "app.py"],
        ["compare", str(GOLDEN), "--old", "app.py", "--new", "app.py", "--batches", "0..99"],
    ],
)
def test_a_batch_in_the_future_is_refused_before_anything_runs(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("open('ran', 'w')\n")
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert "there is no batch 99 yet" in said
    assert "floodmark batches" in said
    assert not (tmp_path / "ran").exists()


def test_a_drill_shows_which_rows_came_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": 1}, {"id": 2}]
    sinks = {"out": compare_sinks(rows, [*rows, rows[0]])}
    found = replace(DRILL, survived=False, points=(point_result("after-sink", 1, sinks),))
    monkeypatch.setattr(api, "drill", lambda *_, **__: found)
    assert run(["drill", "app.py", "--input", "rows.jsonl"]) == 1
    said = capsys.readouterr().out
    assert "after-sink, out, repeated:\n  id 1" in said
    assert "It does not survive. Its own checkpoint and sinks were not touched." in said


def test_rows_of_other_keys_are_not_promised_by_the_limit() -> None:
    one = replace(BATCH, output_rows=17, rows=({"device": "d03"},))
    shown = replace(REPLAY, batches=(one,))
    assert "… 16 more; --limit N shows more" in text(shown)
    assert "Only rows of the key are shown; --export DIR writes all 17." in text(shown, of_key=True)
    assert "--limit" not in text(shown, of_key=True)


def test_a_changed_row_shows_what_changed_however_wide_its_key_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    window = {"start": "2026-11-19T08:10:00+00:00", "end": "2026-11-19T08:20:00+00:00"}
    key = {"window": window, "device": "d03"}
    old = {**key, "place": "cellar " * 9, "celsius": 22.5}
    found = replace(
        ALIKE,
        keys=("window", "device"),
        changed=1,
        only_old=1,
        sample=(
            RowDifference(8, "changed", key, (old,), ({**old, "celsius": 23.5},)),
            RowDifference(9, "only-old", key, ({**key, "celsius": 7.0},), ()),
        ),
    )
    shown = " ".join(compared(found, "old.py", "new.py").split())
    assert "device d03 celsius 22.5 → celsius 23.5" in shown
    assert "device d03 celsius 7.0 → –" in shown
    assert "cellar" not in shown, "it did not change"

    whole = replace(found, keys=(), sample=(RowDifference(8, "only-new", {}, (), (old,)),))
    assert "only-new – → window 2026-11-19 08:10 – 08:20 UTC, device d03" in " ".join(
        compared(whole, "old.py", "new.py").split()
    )
