"""Every golden checkpoint, of every Spark version, moved: the new one stands where the old did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from carried import GO
from floodmark import api
from floodmark.checkpoint.restart import Action
from floodmark.errors import FloodmarkError

GOLDEN = Path(__file__).parents[1] / "golden"
CHECKPOINTS = sorted(path.parent for path in GOLDEN.glob("*/*/checkpoint"))
STRUCTURED = [path for path in CHECKPOINTS if not path.name.startswith("dstreams")]


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.name}"


@pytest.fixture
def cp(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.param / "checkpoint", tmp_path / "cp"))


@pytest.mark.parametrize("cp", STRUCTURED, ids=name, indirect=True)
def test_upgraded_it_goes_on_at_the_same_place(cp: Path, tmp_path: Path) -> None:
    old = api.inspect(str(cp))
    if old.latest_batch is None or (
        old.committed_batch is not None and old.committed_batch > old.latest_batch
    ):
        with pytest.raises(FloodmarkError):
            api.upgrade(str(cp), str(tmp_path / "new"))
        return
    api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO)
    new = api.inspect(str(tmp_path / "new"))
    assert new.restart is not None
    assert new.restart.action in (Action.CONTINUE, Action.RERUN)
    assert new.sources == old.sources
    assert (new.query_id, new.latest_batch) == (old.query_id, old.latest_batch)
    assert new.in_flight_batch == old.in_flight_batch
    assert new.watermark_ms == old.watermark_ms
    assert [(s.operator, s.partitions, s.stores) for s in new.state] == [
        (s.operator, s.partitions, s.stores) for s in old.state
    ]


@pytest.mark.parametrize("cp", STRUCTURED, ids=name, indirect=True)
def test_rewound_and_undone_it_is_as_it_was(cp: Path) -> None:
    before = {path: path.read_bytes() for path in cp.rglob("*") if path.is_file()}
    committed = [batch.batch for batch in api.batches(str(cp)) if batch.status == "committed"]
    if len(committed) < 2:
        pytest.skip("one batch: there is nothing to go back to")
    # Their input files were never kept.
    api.rewind(str(cp), to_batch=committed[-2], accept=["out-of-reach"], carrying=GO)
    assert api.inspect(str(cp)).latest_batch == committed[-2]
    api.undo(str(cp), carrying=GO)
    api_files = {
        path: path.read_bytes()
        for path in cp.rglob("*")
        if path.is_file() and "_floodmark" not in path.parts
    }
    assert api_files == before


@pytest.mark.parametrize("cp", STRUCTURED, ids=name, indirect=True)
def test_backed_up_and_restored_it_is_the_same(cp: Path, tmp_path: Path) -> None:
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    api.restore(str(tmp_path / "repo"), str(tmp_path / "again"), carrying=GO)
    old, new = api.inspect(str(cp)), api.inspect(str(tmp_path / "again"))
    assert (new.query_id, new.committed_batch) == (old.query_id, old.committed_batch)
    assert [(s.operator, s.partitions, s.version) for s in new.state] == [
        (s.operator, s.partitions, s.version) for s in old.state
    ]


def test_there_are_golden_checkpoints() -> None:
    assert STRUCTURED
