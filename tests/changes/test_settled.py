"""Changes that are over: repeated, taken back, forgotten; and plans of that, saved and applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.plan.saved import save_plan
from floodmark.cli.main import run
from floodmark.errors import CannotRead, MalformedFile, NotEmpty, StalePlan


@pytest.fixture
def cp(tmp_path: Path) -> Path:
    return samples.write(tmp_path / "cp", samples.sales(batches=4))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_done_upgrade_says_so(
    cp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO)
    assert run(["upgrade", str(cp), str(tmp_path / "new")]) == 0
    assert "carried out already" in capsys.readouterr().out
    assert run(["upgrade", str(cp), str(tmp_path / "new"), "--execute"]) == 0
    assert "carried out already" in capsys.readouterr().out


def test_an_upgrade_that_has_gone_on_is_told_from_a_foreign_folder(
    cp: Path, tmp_path: Path
) -> None:
    api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO)
    samples.write(tmp_path / "new", {"commits/3": samples.commit_entry()})
    with pytest.raises(NotEmpty) as refused:
        api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO)
    assert "An earlier `upgrade` of" in refused.value.why
    assert "batch 3 committed now" in refused.value.why


def test_an_undone_upgrade_leaves_no_folder(cp: Path, tmp_path: Path) -> None:
    api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO)
    api.undo(str(tmp_path / "new"), carrying=GO)
    assert not (tmp_path / "new").exists()


def test_no_entry_that_floodmark_carries_looks_like_a_gap(cp: Path, tmp_path: Path) -> None:
    api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO)
    found = [item.status for item in api.batches(str(tmp_path / "new"))]
    assert found == ["committed", "committed", "in-flight"]


def test_an_entry_that_a_rewind_makes_does_not_look_like_a_gap(tmp_path: Path) -> None:
    tree = samples.logs(range(3, 8), range(3, 8))
    samples.write(tmp_path, tree)
    api.rewind(str(tmp_path), to_batch=3, carrying=GO)
    assert [item.status for item in api.batches(str(tmp_path))] == ["committed", "committed"]


@pytest.mark.parametrize("verb", ["undo", "forget"])
def test_nothing_is_there(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, str(tmp_path / "nowhere")]) == 3
    assert "no such file or folder" in capsys.readouterr().err


def test_a_saved_undo(cp: Path, tmp_path: Path) -> None:
    before = files(cp)
    api.rewind(str(cp), to_batch=0, carrying=GO)
    plan = str(tmp_path / "undo.json")
    assert run(["undo", str(cp), "--out", plan]) == 0
    saved = json.loads(Path(plan).read_text())
    assert saved["fingerprint"]
    assert [item["name"] for item in saved["preconditions"]] == ["origin-unchanged", "not-in-use"]
    api.apply(plan, carrying=GO)
    assert {path for path in files(cp) if "_floodmark" not in path} == before


def test_a_saved_undo_is_stale_once_the_stream_moved(cp: Path, tmp_path: Path) -> None:
    api.rewind(str(cp), to_batch=0, carrying=GO)
    save_plan(api.undo(str(cp)).plan, str(tmp_path / "undo.json"))
    samples.write(cp, {"offsets/1": samples.offset_entry(1, samples.kafka_offset(9))})
    with pytest.raises(StalePlan, match="has moved since this plan was made"):
        api.apply(str(tmp_path / "undo.json"), carrying=GO)


def test_a_saved_forget(cp: Path, tmp_path: Path) -> None:
    api.rewind(str(cp), to_batch=2, carrying=GO)
    plan = str(tmp_path / "forget.json")
    assert run(["forget", str(cp), "--out", plan]) == 0
    saved = json.loads(Path(plan).read_text())
    assert saved["fingerprint"]
    assert saved["preconditions"]
    api.rewind(str(cp), to_batch=1, carrying=GO)
    with pytest.raises(StalePlan, match="has kept other files"):
        api.apply(plan, carrying=GO)
    save_plan(api.forget(str(cp)).plan, plan)
    api.apply(plan, carrying=GO)
    assert not [path for path in files(cp) if "kept" in path or "journal" in path]


def test_a_saved_backup_is_of_the_query_it_was_planned_for(cp: Path, tmp_path: Path) -> None:
    plan = api.backup(str(cp), str(tmp_path / "repo")).plan
    assert plan.fingerprint
    assert [item.name for item in plan.preconditions] == ["same-query"]
    save_plan(plan, str(tmp_path / "backup.json"))
    samples.write(cp, samples.sales(batches=5))  # a running query may go on
    api.apply(str(tmp_path / "backup.json"), carrying=GO)
    samples.write(cp, {"metadata": b'{"id":"another"}'})
    with pytest.raises(StalePlan, match="now belongs to another query"):
        api.apply(str(tmp_path / "backup.json"), carrying=GO)


def test_a_saved_restore_holds_for_the_place_as_it_was(cp: Path, tmp_path: Path) -> None:
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    plan = api.restore(str(tmp_path / "repo"), str(tmp_path / "new")).plan
    assert plan.fingerprint
    assert {item.name for item in plan.preconditions} == {"target-empty", "snapshot-there"}
    save_plan(plan, str(tmp_path / "restore.json"))
    samples.write(tmp_path / "new", samples.sales(batches=1))
    with pytest.raises(StalePlan):
        api.apply(str(tmp_path / "restore.json"), carrying=GO)


def test_restored_into_a_folder_of_something_else(cp: Path, tmp_path: Path) -> None:
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    samples.write(tmp_path / "data", {"part-00000.parquet": b"PAR1"})
    with pytest.raises(NotEmpty, match="and no checkpoint"):
        api.restore(str(tmp_path / "repo"), str(tmp_path / "data"), carrying=GO)


def test_a_damaged_snapshot_of_state_is_named(cp: Path, tmp_path: Path) -> None:
    for path in (cp / "state/0").glob("[0-9]/*.delta"):
        path.unlink()
    for partition in range(4):
        (cp / f"state/0/{partition}/3.zip").write_bytes(b"PK\3\4 cut short")
    with pytest.raises(MalformedFile, match=r"state/0/0/3\.zip cannot be read"):
        api.upgrade(str(cp), str(tmp_path / "new"))


def test_an_export_into_a_folder_that_is_not_there(
    cp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from floodmark.statestore.export import export_parquet

    pyarrow = pytest.importorskip("pyarrow")
    schema = pyarrow.schema([("key", pyarrow.int64())])
    with pytest.raises(Exception, match="there is no folder") as refused:
        export_parquet([], schema, str(tmp_path / "nodir/x.parquet"))
    assert getattr(refused.value, "status", None) == 2


def test_a_missing_checkpoint_cannot_be_undone(tmp_path: Path) -> None:
    with pytest.raises(CannotRead):
        api.undo(str(tmp_path / "nowhere"))
