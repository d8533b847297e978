"""A second look at a checkpoint reads only what came since the first."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

import samples
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import FloodmarkError, NotThere
from floodmark.storage.files import open_files
from floodmark.storage.glimpse import glimpse
from floodmark.storage.local import LocalFiles


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = samples.write(tmp_path / "cp", samples.logs(range(10), range(9)))
    settle(folder)
    return folder


def settle(folder: Path) -> None:
    """As if the last change was a while ago."""
    past = time.time() - 60
    for log in ("offsets", "commits"):
        os.utime(folder / log, (past, past))


def local(folder: Path) -> LocalFiles:
    found = open_files(str(folder))
    assert isinstance(found, LocalFiles)
    return found


def test_an_unchanged_checkpoint_is_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = local(place)
    first = glimpse(files)
    assert (first.latest, first.committed, first.in_flight) == (9, 8, 9)
    assert len(first.commit_times) == 9

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was read again")

    for name in ("read", "read_many", "list", "level", "file_info"):
        monkeypatch.setattr(LocalFiles, name, refuse)
    assert glimpse(files, first) is first


def test_a_new_batch_is_found_by_its_name(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = local(place)
    first = glimpse(files)
    samples.write(place, {"commits/9": samples.commit_entry()})
    samples.write(place, {"offsets/10": samples.offset_entry(10, samples.kafka_offset(10))})
    read: list[str] = []
    plain = LocalFiles.read

    def noted(self: LocalFiles, path: RelativePath) -> bytes:
        data = plain(self, path)
        read.append(path)
        return data

    monkeypatch.setattr(LocalFiles, "read", noted)
    monkeypatch.setattr(LocalFiles, "list", lambda *_: pytest.fail("the logs were listed again"))
    second = glimpse(files, first)
    assert (second.latest, second.committed, second.in_flight) == (10, 9, 10)
    assert second.planned_ms == samples.time_of(10)
    assert read == ["offsets/10"]
    assert [batch for batch, _ in second.commit_times][-1] == 9


def test_a_rewind_is_seen(place: Path) -> None:
    files = local(place)
    first = glimpse(files)
    for path in ("offsets/9", "offsets/8", "commits/8"):
        (place / path).unlink()
    second = glimpse(files, first)
    assert (second.latest, second.committed) == (7, 7)


def test_batches_that_skip_numbers_are_seen(place: Path) -> None:
    files = local(place)
    first = glimpse(files)
    tree = {f"offsets/{n}": samples.offset_entry(n, samples.kafka_offset(n)) for n in (14, 19)}
    samples.write(place, tree | {"commits/19": samples.commit_entry()})
    second = glimpse(files, first)
    assert (second.latest, second.committed) == (19, 19)


def test_a_change_in_the_same_moment_is_not_missed(place: Path) -> None:
    """A folder's time may stand still while two files are written."""
    files = local(place)
    os.utime(place / "commits")
    first = glimpse(files)
    assert first.stamp is None


def test_a_checkpoint_that_is_gone_says_so(place: Path) -> None:
    files = local(place)
    first = glimpse(files)
    shutil.rmtree(place)
    with pytest.raises(NotThere):
        glimpse(files, first)


def test_a_damaged_newest_entry_does_not_hide_the_rest(place: Path) -> None:
    (place / "offsets" / "9").write_bytes(b"v1\n{")
    found = glimpse(local(place))
    assert (found.latest, found.entry, found.planned_ms) == (9, None, None)


class Counted(samples.HeldFiles):
    """Storage whose every request costs."""

    def __init__(self, tree: dict[str, bytes]) -> None:
        super().__init__(tree, reads_cost=True)
        self.requests: list[str] = []

    def list(self, folder: str = "", most: int | None = None):  # type: ignore[no-untyped-def]
        self.requests.append(f"list {folder}")
        return super().list(folder, most)

    def read(self, path: str) -> bytes:
        self.requests.append(f"read {path}")
        return super().read(path)

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | FloodmarkError]:
        wanted = list(paths)
        self.requests += [f"read {path}" for path in wanted]
        return super().read_many(wanted)


def test_on_an_object_store_a_quiet_checkpoint_is_one_request() -> None:
    files = Counted(samples.logs(range(10), range(10)))
    first = glimpse(files)
    files.requests.clear()
    assert glimpse(files, first) is first
    assert files.requests == ["list offsets"]
    files.tree |= {"offsets/10": samples.offset_entry(10, samples.kafka_offset(10))}
    files.requests.clear()
    second = glimpse(files, first)
    assert second.in_flight == 10
    assert files.requests == ["list offsets", "list commits", "read offsets/10"]
    files.requests.clear()
    assert glimpse(files, second) is second
    assert files.requests == ["list offsets", "list commits"]
