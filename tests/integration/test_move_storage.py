"""Moves on a real S3 server: no rename, no folders, and copies made by the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import samples
from floodmark import api
from floodmark.changes.use import Clock
from floodmark.changes.verbs import Carrying
from floodmark.storage.files import Files, open_files

if TYPE_CHECKING:
    from services.s3 import S3Server

pytestmark = pytest.mark.services


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
