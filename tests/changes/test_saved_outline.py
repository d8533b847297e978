"""An outline takes the place of an older outline, and of nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from floodmark import api
from floodmark.cli.main import run
from floodmark.engine.run.listeners.outline_listener import OutlineListener
from floodmark.errors import CannotWrite, NotEmpty, Refused


def checkpoint(place: Path, batches: int = 20) -> str:
    return str(samples.write(place, samples.sales(batches)))


def test_an_outline_of_the_same_checkpoint_is_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cp, file = checkpoint(tmp_path / "cp"), tmp_path / "streams" / "one.json"
    text = api.outline(cp, out=str(file))
    older = json.dumps({**json.loads(text), "settings": {"spark.sql.shuffle.partitions": "7"}})
    file.write_text(older)
    monkeypatch.chdir(tmp_path)
    api.outline("cp", out=str(file))
    assert json.loads(file.read_text())["settings"] == json.loads(text)["settings"]
    assert [one.name for one in file.parent.iterdir()] == ["one.json"]
    file.write_text(text[: len(text) // 2])
    assert api.outline(cp, out=str(file)) == file.read_text(), "half an outline is made again"


def test_the_outline_of_another_checkpoint_is_replaced_on_request_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = checkpoint(tmp_path / "one"), checkpoint(tmp_path / "two")
    file = tmp_path / "outline.json"
    first = api.outline(one, out=str(file))
    assert run(["outline", two, "-o", str(file)]) == 4
    assert f"outline of another checkpoint: {one}" in capsys.readouterr().err
    assert file.read_text() == first
    assert run(["outline", two, "-o", str(file), "--replace"]) == 0
    assert json.loads(file.read_text())["checkpoint"] == two


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import this\n", "is not an outline"),
        (json.dumps({"floodmark": "plan", "note": "checkpoint"}), "is not an outline"),
        (json.dumps({"floodmark": "checkpoint-outline", "version": 2}), "of a later version"),
    ],
)
@pytest.mark.parametrize("replace", [False, True])
def test_any_other_file_stays(text: str, words: str, replace: bool, tmp_path: Path) -> None:
    cp, file = checkpoint(tmp_path / "cp"), tmp_path / "app.py"
    file.write_text(text)
    with pytest.raises(Refused, match=words):
        api.outline(cp, out=str(file), replace=replace)
    with pytest.raises(Refused, match=words):
        OutlineListener(str(file)).begins("sales", None, None, 0)  # type: ignore[arg-type]
    assert file.read_text() == text


def test_what_is_no_file_is_refused_and_a_link_stays_a_link(tmp_path: Path) -> None:
    cp, folder, file = checkpoint(tmp_path / "cp"), tmp_path / "folder", tmp_path / "real.json"
    folder.mkdir()
    for place in (str(folder), "/dev/null"):
        with pytest.raises(NotEmpty, match="is not a file"):
            api.outline(cp, out=place)
    file.touch()
    (tmp_path / "link.json").symlink_to(file)
    assert api.outline(cp, out=str(tmp_path / "link.json")) == file.read_text()
    assert (tmp_path / "link.json").is_symlink()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "file/below.json", "loop"])
def test_a_place_that_cannot_be_written_is_said_to_be_so(name: str, tmp_path: Path) -> None:
    cp = checkpoint(tmp_path / "cp")
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(CannotWrite, match="cannot be written"):
        api.outline(cp, out=str(tmp_path / name))
