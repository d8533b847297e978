"""Moves on object stores: no rename, no folders, and copies made by the store."""

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
from floodmark.changes.planners.kept_operators import Drawn, kept_operators
from floodmark.changes.planners.migrate import Migration, plan_migrate
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import load

if TYPE_CHECKING:
    from services.emulators import Emulator
    from services.s3 import S3Server

pytestmark = pytest.mark.services


@pytest.fixture
def go(s3: S3Server) -> Carrying:
    return going(s3)


def going(store: S3Server | Emulator) -> Carrying:
    clock = Clock(pause=lambda seconds: None)
    return Carrying(execute=True, storage=store.storage_options, clock=clock)


@pytest.fixture(
    params=[
        "s3",
        pytest.param("azurite", marks=pytest.mark.soak),
        pytest.param("gcs", marks=pytest.mark.soak),
    ]
)
def store(request: pytest.FixtureRequest) -> S3Server | Emulator:
    found: S3Server | Emulator = request.getfixturevalue(request.param)
    return found


def tree_of(files: Files) -> samples.Tree:
    found = [file.path for file in files.list().files if not file.path.startswith("_floodmark/")]
    read = files.read_many(found)
    return {path: data for path, data in read.items() if isinstance(data, bytes)}


def test_upgrade_rewind_undo_and_backup(store: S3Server | Emulator) -> None:
    place, options, go = store.place("moves"), store.storage_options, going(store)
    tree = samples.sales(batches=3)
    cp = samples.put(open_files(f"{place}/cp", options), tree)
    api.upgrade(f"{place}/cp", f"{place}/new", carrying=go)
    found = api.inspect(f"{place}/new", options)
    assert (found.committed_batch, found.in_flight_batch) == (1, 2)
    api.copy(f"{place}/cp", f"{place}/copy", carrying=go)
    assert tree_of(open_files(f"{place}/copy", options)) == tree
    api.rewind(f"{place}/cp", to_batch=0, carrying=go)
    assert api.inspect(f"{place}/cp", options).latest_batch == 0
    api.undo(f"{place}/cp", carrying=go)
    assert tree_of(cp) == tree
    api.backup(f"{place}/cp", f"{place}/repo", carrying=go)
    api.restore(f"{place}/repo", f"{place}/again", carrying=go)
    assert tree_of(open_files(f"{place}/again", options)) == tree


def test_state_is_read_and_rewritten(store: S3Server | Emulator) -> None:
    place, options, go = store.place("state"), store.storage_options, going(store)
    api.copy(str(SALES), f"{place}/cp", carrying=go)
    assert api.doctor(f"{place}/cp", storage=options) == ()
    api.repartition(f"{place}/cp", f"{place}/spread", partitions=3, carrying=go)
    api.convert(f"{place}/spread", f"{place}/rocksdb", provider="rocksdb", carrying=go)
    wanted = rows_of(str(SALES), {})
    assert wanted
    for name in ("cp", "spread", "rocksdb"):
        assert rows_of(f"{place}/{name}", options) == wanted


def rows_of(location: str, options: dict[str, Any]) -> list[str]:
    """Keys and values; which partition they are in is not compared."""
    rows = api.state(location, storage=options).to_arrow().to_pylist()
    return sorted(str((row["key"], row["value"])) for row in rows)


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
GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
SALES = GOLDEN / "sales-hdfs" / "checkpoint"
TRANSFORM = GOLDEN / "transform-with-state" / "checkpoint"


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
