"""Folders for scratch files and exports: empty ones, and none in a place that stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import samples
from floodmark.cli.main import run
from floodmark.engine.drill.doors.places import Places
from floodmark.engine.drill.run_spec import SinkNote
from floodmark.engine.proof.scratch import empty_folder, scratch_place
from floodmark.errors import WrongUse


@pytest.mark.parametrize("inside", ["new", "offsets/new", "../link/new", ""])
def test_nothing_is_put_into_the_checkpoint(inside: str, tmp_path: Path) -> None:
    cp = tmp_path / "cp"
    cp.mkdir()
    (tmp_path / "link").symlink_to(cp)
    for real in (str(cp), f"file://{cp}", f"file:{cp}"):
        with pytest.raises(WrongUse, match="is inside the checkpoint"):
            empty_folder(str(cp / inside), "--export", real)
        with (
            pytest.raises(WrongUse, match="is inside the checkpoint"),
            scratch_place(str(cp / inside), "replay", real),
        ):
            pass
    assert list(cp.iterdir()) == []
    assert empty_folder(str(tmp_path / "cp-2"), "--export", str(cp)) == tmp_path / "cp-2"
    assert empty_folder(str(tmp_path / "x"), "--export", "s3://bucket/cp") == tmp_path / "x"


@pytest.mark.parametrize("option", ["--scratch", "--export"])
def test_replay_and_compare_say_so_before_they_start_anything(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cp, app = samples.write(tmp_path / "cp", samples.sales(10)), tmp_path / "app.py"
    app.write_text("raise SystemExit('it was run')\n")
    before = sorted(cp.rglob("*"))
    inside = [option, str(cp / "offsets" / "new")]
    for verb in (
        ["replay", str(cp), "--batch", "3", "--app", str(app)],
        ["compare", str(cp), "--old", str(app), "--new", str(app)],
    ):
        assert run([*verb, *inside]) == 2
        assert f"is inside the checkpoint, {cp}" in capsys.readouterr().err
    assert sorted(cp.rglob("*")) == before


def test_a_drill_in_the_folder_of_the_real_sink_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "scratch" / "run"
    folder.mkdir(parents=True)
    places = Places(folder)
    with pytest.raises(WrongUse, match="is inside what the pipeline writes to"):
        places.note(SinkNote(f"file:{tmp_path}/out", str(folder / "sinks" / "out-1"), "parquet"))
    places.note(SinkNote("table out", str(folder / "sinks" / "out-2"), "delta"))
    places.note(SinkNote(f"{tmp_path}/other", str(folder / "sinks" / "out-3"), "delta"))
    assert [note.real for note in places.notes] == ["table out", f"{tmp_path}/other"]
