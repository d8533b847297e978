"""`compact`: fewer files, and everything that a start or a way back needs is still there."""

from __future__ import annotations

from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.errors import StateFileMissing
from rules.examples import golden

STATEFUL = [
    "3.5/sales-hdfs-snapshot",
    "3.5/sales-rocksdb",
    "4.1/sales-changelog",
    "4.1/sales-format-2",
    "4.1/join",
    "4.2/in-flight-state",
]


def rows(place: Path, batch: int) -> list[object]:
    found = api.state(str(place), batch=batch).rows()
    return sorted(found, key=repr)


def rules_found(place: Path) -> set[str]:
    return {item.rule for item in api.doctor(str(place), 1.0)}


@pytest.mark.parametrize("name", STATEFUL)
def test_the_state_of_what_stays_is_the_same(name: str, tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden(name))
    before = api.inspect(str(place))
    batch = before.committed_batch
    assert batch is not None
    expected = rows(place, batch)
    change = api.compact(str(place), keep=1, carrying=GO)
    after = api.inspect(str(place))
    assert change.plan.steps
    assert (after.latest_batch, after.committed_batch, after.in_flight_batch) == (
        before.latest_batch,
        before.committed_batch,
        before.in_flight_batch,
    )
    assert rows(place, batch) == expected
    assert rules_found(place) == set()
    assert not [step for step in change.plan.steps if (place / step.path).exists()]


def test_entries_go_as_sparks_retention_has_them_go(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", samples.logs(range(20), range(19)))
    api.compact(str(place), keep=5, carrying=GO)
    assert sorted(int(path.name) for path in (place / "offsets").iterdir()) == list(range(14, 20))
    assert sorted(int(path.name) for path in (place / "commits").iterdir()) == list(range(14, 19))


def test_the_setting_of_the_last_start_is_kept(tmp_path: Path) -> None:
    note = b'{"conf":{"spark.sql.streaming.minBatchesToRetain":"7"}}'
    tree = {**samples.logs(range(20), range(20)), "_floodmark/starts/1.json": note}
    change = api.compact(str(samples.write(tmp_path / "cp", tree)))
    assert change.plan.options["keep"] == 7
    assert "offsets/11" in {step.path for step in change.plan.steps}
    assert "offsets/12" not in {step.path for step in change.plan.steps}


def test_the_list_of_seen_files_is_the_same(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("3.5/files"))
    seen = {file.path for file in api.files(str(place))}
    change = api.compact(str(place), carrying=GO)
    assert {step.path for step in change.plan.steps} >= {f"sources/0/{n}" for n in range(9)}
    assert {file.path for file in api.files(str(place))} == seen
    assert rules_found(place) == set()


def test_the_sinks_log_loses_what_its_compaction_holds(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", samples.logs(range(13), range(13)))
    log = {f"_spark_metadata/{n}{'.compact' * (n == 9)}": b"v1" for n in range(13)}
    out = samples.write(tmp_path / "out", log)
    api.compact(str(place), sink=str(out), carrying=GO)
    left = sorted(path.name for path in (out / "_spark_metadata").iterdir())
    assert left == ["10", "11", "12", "9.compact"]
    api.undo(str(place), sink=str(out), carrying=GO)
    assert len(list((out / "_spark_metadata").iterdir())) == 13


def test_leftovers_go_and_kept_things_stay(tmp_path: Path) -> None:
    tree = samples.logs(range(3), range(3))
    tree |= {"offsets/.3.crc": b"", "commits/.1.0f6e0000-0000-4000-8000-000000000000.tmp": b""}
    place = samples.write(tmp_path / "cp", tree)
    change = api.compact(str(place), carrying=GO)
    assert {step.path for step in change.plan.steps} == {
        "offsets/.3.crc",
        "commits/.1.0f6e0000-0000-4000-8000-000000000000.tmp",
    }
    assert api.compact(str(place)).plan.steps == ()


def test_a_checkpoint_that_is_not_whole_is_not_thinned_out(tmp_path: Path) -> None:
    tree = golden("3.5/sales-hdfs")
    del tree["state/0/1/3.delta"]
    with pytest.raises(StateFileMissing, match=r"state/0/1/3\.delta is missing"):
        api.compact(str(samples.write(tmp_path / "cp", tree)), keep=1)
