"""What a drill refuses before anything runs, and what a run is told: no Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from floodmark import api
from floodmark.cli.main import run
from floodmark.engine.drill.child import _started, _to_own_place
from floodmark.engine.drill.doors.places import Places
from floodmark.engine.drill.drill import DrillOptions, _Drilling, _nothing_written
from floodmark.engine.drill.run_spec import RunSpec, SinkNote, read_spec
from floodmark.engine.drill.samples.input_sample import InputSample
from floodmark.engine.drill.sink_rows import rows_of
from floodmark.errors import FloodmarkError, NoAnswer, NotEmpty, WrongUse
from floodmark.testing import StreamUnderTest


def test_what_is_refused_before_anything_runs(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n')
    rows = str(tmp_path / "rows.jsonl")
    with pytest.raises(NotEmpty, match="--scratch"):
        api.drill(str(app), input=rows, scratch=str(tmp_path))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text('{"n": 1}')
    with pytest.raises(WrongUse, match="is inside the sample"):
        api.drill(str(app), input=str(tmp_path / "files"), scratch=str(tmp_path / "files" / "x"))
    assert [one.name for one in (tmp_path / "files").iterdir()] == ["1.json"]
    with pytest.raises(WrongUse, match="no such point"):
        api.drill(str(app), input=rows, point="before-lunch")
    with pytest.raises(WrongUse, match="not a PostgreSQL database"):
        api.drill(str(app), input=rows, sink="mysql://host/db")
    with pytest.raises(WrongUse, match="on one machine"):
        api.drill(str(app), input=rows, master="yarn")
    with pytest.raises(WrongUse, match="needs a sample"):
        api.drill(str(app), input=())
    with pytest.raises(FloodmarkError, match=r"gone\.py"):
        api.drill(str(tmp_path / "gone.py"), input=rows)
    assert run(["drill", str(app), "--input", str(tmp_path / "gone" / "x")]) == 2
    assert "there is no such folder or file" in capsys.readouterr().err
    assert run(["drill", str(app)]) == 2


def test_a_stream_refuses_what_makes_no_sense(app: Path, tmp_path: Path) -> None:
    stream = StreamUnderTest(app, tmp_path / "s")
    with pytest.raises(WrongUse, match="no rows"):
        stream.feed([])
    with pytest.raises(WrongUse, match="no source 1"):
        stream.feed([{"n": 1}], source=1)
    with pytest.raises(WrongUse, match="no point"):
        stream.kill(at="lunch")
    with pytest.raises(WrongUse, match="has not run"):
        stream.rows()


def test_a_run_is_told_by_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    spec = RunSpec(
        "a.py:x", str(tmp_path), "shared", (InputSample("topic", "t", "h:1"),), {"k": "v"}
    )
    path = spec.write()
    assert read_spec(path) == spec
    assert path.stat().st_mode & 0o077 == 0


def test_a_write_that_died_midway_left_no_rows(tmp_path: Path) -> None:
    half = tmp_path / "out" / "_temporary" / "0" / "part-0.parquet"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    assert rows_of(None, SinkNote("out", str(tmp_path / "out"), "parquet")) == []
    assert rows_of(None, SinkNote("out", str(tmp_path / "none"), "delta")) == []


def _facts(**told: object) -> SimpleNamespace:
    """Of an undisturbed run."""
    return SimpleNamespace(
        **{
            "rows": 3,
            "wrote": True,
            "is_stateful": False,
            "notes": (),
            "sources": (),
            "late": 0,
            "batches": 1,
            "refused": (),
            "output_mode": "Append",
            "beginning": SimpleNamespace(batch=None, checkpoint=None, why=""),
            **told,
        }
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"rows": 0}, "has read no row of the sample"),
        ({"wrote": False, "late": 2}, "3 rows of the sample, of which 2 came after the watermark"),
    ],
)
def test_a_sample_of_which_nothing_comes_through_is_said(
    told: dict[str, object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = SimpleNamespace(folder=tmp_path, rows=dict, facts=lambda: _facts(**told))
    monkeypatch.setattr(_Drilling, "_undisturbed", lambda _self: undisturbed)
    request = DrillOptions("app.py", ("rows.jsonl",))
    with pytest.raises(WrongUse, match=words) as raised:
        _Drilling(request, None, None).run(())  # type: ignore[arg-type]
    assert "Give a sample that the code" in str(raised.value.do)


def test_a_window_that_does_not_close_is_named_as_the_cause() -> None:
    never = _facts(wrote=False, is_stateful=True)
    told = _nothing_written(never)  # type: ignore[arg-type]
    assert "comes out when the watermark has passed it" in told.why
    assert "Let its last rows be later" in told.do
    told = _nothing_written(_facts(wrote=False))  # type: ignore[arg-type]
    assert "watermark" not in told.why + told.do


@pytest.mark.parametrize(
    ("sink", "options"),
    [("kafka", {"topic": "t"}), ("foreach", {}), ("console", {}), ("delta", {})],
)
def test_a_sink_that_a_drill_cannot_see_into_is_named_with_what_it_sees(
    sink: str, options: dict[str, str], tmp_path: Path
) -> None:
    places = Places(tmp_path / "run")
    query = SimpleNamespace(sink=sink, sink_options=options)
    with pytest.raises(WrongUse, match=f"cannot see into a {sink} sink") as raised:
        _to_own_place(SimpleNamespace(), query, places)  # type: ignore[arg-type]
    assert "--sink postgresql://" in raised.value.do
    assert not places.notes


def test_a_drill_that_killed_nobody_is_no_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = SimpleNamespace(folder=tmp_path, rows=dict, facts=_facts)
    monkeypatch.setattr(_Drilling, "_undisturbed", lambda _self: undisturbed)
    request = DrillOptions("app.py", ("rows.jsonl",), points=("during-state",))
    with pytest.raises(NoAnswer, match="no driver was killed") as raised:
        _Drilling(request, None, None).run(request.points)  # type: ignore[arg-type]
    assert "during-state: the query keeps no state" in raised.value.why


def test_a_query_that_does_not_start_is_said_in_a_sentence() -> None:
    def start() -> None:
        raise ValueError("[NO_COLUMN] Partition column k not found\n\nJVM stacktrace:\n  at a.b.C")

    with pytest.raises(NoAnswer, match="the query does not start") as raised:
        _started(start)
    assert raised.value.why == "[NO_COLUMN] Partition column k not found"
