"""Storage that keeps a file back for a moment: it counts neither as lost nor as damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carried import GO
from floodmark import api
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import CannotRead, StoppedMidway, Unfinished
from floodmark.storage.files import open_files
from floodmark.storage.last_start import latest_note
from floodmark.storage.local import LocalFiles

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
VERBS: dict[str, Callable[[str, str], Any]] = {
    "upgrade": lambda cp, new: api.upgrade(cp, new, carrying=GO),
    "copy": lambda cp, new: api.copy(cp, new, carrying=GO),
    "repartition": lambda cp, new: api.repartition(cp, new, partitions=3, carrying=GO),
    "rewind": lambda cp, new: api.rewind(cp, to_batch=1, accept="out-of-reach", carrying=GO),
    "compact": lambda cp, new: api.compact(cp, keep=1, carrying=GO),
    "backup": lambda cp, new: api.backup(cp, new, carrying=GO),
    "repair": lambda cp, new: api.repair(cp, accept="repeats", carrying=GO),
}


@pytest.fixture
def cp(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "cp"))


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def keep_back(monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    """Every read of a file fails, as behind a network that drops."""
    read, many = LocalFiles.read, LocalFiles.read_many

    def refused() -> CannotRead:
        return CannotRead(f"{kept}: the storage answered with an error", do="Try again.")

    def one(files: LocalFiles, path: RelativePath) -> bytes:
        if path == kept:
            raise refused()
        return read(files, path)

    def several(files: LocalFiles, paths: Any) -> Any:
        wanted = list(paths)
        found = many(files, [path for path in wanted if path != kept])
        return {path: refused() if path == kept else found[path] for path in wanted}

    monkeypatch.setattr(LocalFiles, "read", one)
    monkeypatch.setattr(LocalFiles, "read_many", several)


@pytest.mark.parametrize("kept", ["offsets/1", "commits/1", "offsets/2", "metadata"])
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_planned(
    verb: str, kept: str, cp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With offsets/1 unread, `upgrade` wrote another in its place, and `repair` deleted batches."""
    before, new = tree(cp), tmp_path / "new"
    if verb == "repair":
        (cp / "state/0/0/3.delta").unlink()
        before.pop("state/0/0/3.delta")
    with monkeypatch.context() as patched:
        keep_back(patched, kept)
        with pytest.raises(CannotRead) as caught:
            VERBS[verb](str(cp), str(new))
    assert kept in caught.value.what
    assert caught.value.do
    assert tree(cp) == before
    assert not (new / "metadata").exists()
    assert VERBS[verb](str(cp), str(new)).executed


def test_a_note_of_the_last_start_that_is_kept_back(
    cp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note of an earlier start was taken in its place, with its code and its sink."""
    notes = cp / "_floodmark" / "starts"
    notes.mkdir(parents=True)
    for number, sink in enumerate(("console", "noop")):
        note = {"floodmark": "start-note", "sink": sink, "next_batch": 2 * number}
        (notes / f"{number}.json").write_text(json.dumps(note))
    found = latest_note(open_files(str(cp)))
    assert found is not None
    assert found["sink"] == "noop"
    keep_back(monkeypatch, "_floodmark/starts/1.json")
    for ask in (lambda: latest_note(open_files(str(cp))), lambda: api.upgrade(str(cp), f"{cp}-n")):
        with pytest.raises(CannotRead, match="starts"):
            ask()
    assert api.inspect(str(cp)).committed_batch == 2


def test_files_of_a_batch_whose_entry_is_kept_back(
    cp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They looked like files of an earlier batch."""
    keep_back(monkeypatch, "offsets/1")
    with pytest.raises(CannotRead, match="offsets/1: storage did not give this file"):
        api.files(str(cp))


def test_a_block_that_is_left_by_a_change_that_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last request of a change was lost: no query could start, and nothing said why."""
    cp = Path(shutil.copytree(GOLDEN, tmp_path / "a place"))
    delete = LocalFiles.delete

    def blocked(files: LocalFiles, paths: Any) -> None:
        wanted = list(paths)
        if "offsets/3" in wanted:
            raise CannotRead("offsets/3: the storage answered with an error", do="Try again.")
        delete(files, wanted)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "delete", blocked)
        with pytest.raises(StoppedMidway) as stopped:
            api.compact(str(cp), keep=1, carrying=GO)
    assert (cp / "offsets/3").exists()
    assert f"apply --resume '{cp}' --execute" in stopped.value.do
    for verb in ("compact", "upgrade", "repair"):
        with pytest.raises(Unfinished) as unfinished:
            VERBS[verb](str(cp), f"{cp}-new")
        assert f"apply --resume '{cp}' --execute" in unfinished.value.do
    with pytest.raises(Unfinished):
        api.forget(str(cp), carrying=GO)
    assert api.resume(str(cp), carrying=GO).executed
    assert not (cp / "offsets/3").exists()
    assert api.inspect(str(cp)).committed_batch == 2
