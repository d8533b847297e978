"""Moves on a real S3 server: no rename, no folders, and copies made by the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import samples
from floodmark import api
from floodmark.changes.use import Clock
from floodmark.changes.verbs import Carrying
from floodmark.storage.files import Files, open_files

if TYPE_CHECKING:
    from services.s3 import S3Server

pytestmark = pytest.mark.services


class Killed(BaseException):
    """As a killed process: nothing after it happens."""


class Countdown:
    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0

    def counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if self.count >= self.at:
                raise Killed
            return original(*arguments, **named)

        return call


@pytest.fixture
def go(s3: S3Server) -> Carrying:
    clock = Clock(pause=lambda seconds: None)
    return Carrying(execute=True, storage=s3.storage_options, clock=clock)


def tree_of(files: Files) -> samples.Tree:
    found = [file.path for file in files.list().files if not file.path.startswith("_floodmark/")]
    read = files.read_many(found)
    return {path: data for path, data in read.items() if isinstance(data, bytes)}


def test_upgrade_rewind_undo_and_backup(s3: S3Server, go: Carrying) -> None:
    place = s3.place("moves")
    tree = samples.sales(batches=3)
    cp = samples.put(open_files(f"{place}/cp", s3.storage_options), tree)
    api.upgrade(f"{place}/cp", f"{place}/new", carrying=go)
    found = api.inspect(f"{place}/new", s3.storage_options)
    assert (found.committed_batch, found.in_flight_batch) == (1, 2)
    api.rewind(f"{place}/cp", to_batch=0, carrying=go)
    assert api.inspect(f"{place}/cp", s3.storage_options).latest_batch == 0
    api.undo(f"{place}/cp", carrying=go)
    assert tree_of(cp) == tree
    api.backup(f"{place}/cp", f"{place}/repo", carrying=go)
    api.restore(f"{place}/repo", f"{place}/again", carrying=go)
    assert tree_of(open_files(f"{place}/again", s3.storage_options)) == tree


def test_the_store_copies_and_nothing_is_read(s3: S3Server, go: Carrying) -> None:
    place = s3.place("fork")
    tree = samples.sales(batches=3)
    samples.put(open_files(f"{place}/cp", s3.storage_options), tree)
    plan = api.copy(f"{place}/cp", f"{place}/new", carrying=Carrying(storage=s3.storage_options))
    copied = [step for step in plan.plan.steps if step.do == "copy"]
    with s3.requests() as sent:
        api.copy(f"{place}/cp", f"{place}/new", carrying=go)
    assert tree_of(open_files(f"{place}/new", s3.storage_options)) == tree
    # Planning reads the logs; the copies themselves are one PUT each.
    assert sent["PUT"] <= len(copied) + 6


@pytest.mark.parametrize("going_on", ["repeat", "undo"])
def test_killed_on_the_way(
    s3: S3Server, go: Carrying, going_on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("pipe_file", "cp_file", "rm_file")
    for at in (1, 2, 3, 6, 9):
        place = s3.place("killed")
        cp = open_files(f"{place}/cp", s3.storage_options)
        samples.put(cp, samples.sales(batches=3))
        before = tree_of(cp)
        countdown = Countdown(at)
        store = cp.fs  # type: ignore[attr-defined]
        with monkeypatch.context() as patched:
            for name in names:
                patched.setattr(store, name, countdown.counted(getattr(store, name)))
            with pytest.raises(Killed):
                api.rewind(f"{place}/cp", to_batch=0, carrying=go)
        if going_on == "repeat":
            api.rewind(f"{place}/cp", to_batch=0, carrying=go)
            assert api.inspect(f"{place}/cp", s3.storage_options).latest_batch == 0
        elif at > 1:
            api.undo(f"{place}/cp", carrying=go)
            assert tree_of(cp) == before
