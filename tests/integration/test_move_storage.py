"""Moves on a real S3 server: no rename, no folders, and copies made by the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import samples
from floodmark import api
from floodmark.changes.apply import Carrying, places_of
from floodmark.changes.carry.origin import open_origin
from floodmark.changes.carry.rehome import moved_operator_metadata
from floodmark.changes.carry.resume_point import UpgradeOptions
from floodmark.changes.execute import carry_out
from floodmark.changes.in_use import Clock
from floodmark.changes.plan import seal
from floodmark.changes.planners.migrate import Drawn, Migration, kept_operators, plan_migrate
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import load

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


@pytest.mark.parametrize("verb", ["copy", "repartition", "convert", "upgrade", "migrate"])
def test_schema_paths_keep_the_name_that_spark_has_for_the_store(
    s3: S3Server, go: Carrying, verb: str
) -> None:
    """fsspec says s3://, Spark s3a://: with the other name Spark finds no schemas at all."""
    place = s3.place(f"named-{verb}")
    bucket = place.removeprefix("s3://")
    old = open_files(f"{place}/cp", s3.storage_options)
    samples.put(old, _of_spark(f"s3a://{bucket}/cp"))
    new = f"{place}/new"
    if verb == "migrate":
        _migrate(old, f"{place}/cp", new, go)
    else:
        options: dict[str, Any] = {"repartition": {"partitions": 3}, "convert": FORMAT_2}.get(
            verb, {}
        )
        getattr(api, verb)(f"{place}/cp", new, carrying=go, **options)
    checkpoint = load(open_files(new, s3.storage_options))
    paths = [
        path
        for operator in checkpoint.operators.values()
        for store in operator.stores
        for path in store.schema_paths
    ]
    assert paths
    assert all(path.startswith(f"s3a://{bucket}/new/state/0/_stateSchema/") for path in paths)
    there = {file.path for file in checkpoint.files}
    assert {path.removeprefix(f"s3a://{bucket}/new/") for path in paths} <= there
    findings = api.doctor(new, storage=s3.storage_options)
    assert "FM136" not in {finding.code for finding in findings}


FORMAT_2: dict[str, Any] = {"provider": "rocksdb", "state_format": 2}
TRANSFORM = Path(__file__).parents[1] / "golden" / "4.2" / "transform-with-state" / "checkpoint"


def _of_spark(root: str) -> samples.Tree:
    """A checkpoint of transformWithState as Spark would have written it at `root`."""
    tree: samples.Tree = {}
    for path in TRANSFORM.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            name = path.relative_to(TRANSFORM).as_posix()
            data = path.read_bytes()
            tree[name] = moved_operator_metadata(data, root) if "/v2/" in name else data
    return tree


def _migrate(old: Files, location: str, new: str, go: Carrying) -> None:
    """The same code as new code: what Spark drew of it lay on this machine's disk."""
    origin = open_origin(old, location)
    after = origin.checkpoint.committed_batch
    assert after is not None
    kept = kept_operators(origin.files, origin.checkpoint, after, None)
    drawn = {
        path.relative_to(TRANSFORM).as_posix(): path.read_bytes()
        for folder in ("_metadata", "_stateSchema")
        for path in TRANSFORM.glob(f"state/0/{folder}/**/*")
        if path.is_file() and not path.name.startswith(".")
    }
    plan = seal(plan_migrate(origin, new, UpgradeOptions(), Migration(), kept, Drawn(kept, drawn)))
    places = places_of(plan, go.storage)
    carry_out(plan, places, clock=go.clock, rewriter=StateRewriter())
