"""`repair` on every broken example: what the doctor calls repairable is mended, and no more."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from changes_crashing import Killed, dying

import samples
from broken.damage import metadata, set_conf
from carried import GO
from floodmark import api
from floodmark.changes.plan import NEEDED, Consequence, refuse_unaccepted
from floodmark.changes.plan.saved import save_plan
from floodmark.changes.sinks.known_sink import KnownSink, known_sink
from floodmark.errors import NoAnswer, Unfinished, WouldLose
from floodmark.rules.registry import rules_of
from rules.examples import example, golden

EVERYTHING = ("repeats", "changed-files", "unchanged-query")
# What cannot be read is removed; Spark writes it at its next start, and not before.
LEAVES = {
    "state-schema-unreadable": {"state-schema-missing"},
    "operator-metadata-unreadable": {"operator-metadata-missing"},
}
# A hundred thousand files on a disk tell no more than the rule's own test does.
RULES = [k.rule.name for k in rules_of("checkpoint") if k.rule.name != "too-many-files"]


def broken(name: str, folder: Path) -> Path:
    """A rule's broken example on disk."""
    made = example("checkpoint", name.replace("-", "_"))
    tree = dict(golden(made.FROM))
    made.damage(tree)
    place = samples.write(folder / "cp", tree)
    for path, mtime in getattr(made, "MTIMES", {}).items():
        os.utime(place / path, ns=(mtime * 1_000_000, mtime * 1_000_000))
    return place


def rules_found(place: Path, read_data: float | None = 1.0) -> set[str]:
    return {item.rule for item in api.doctor(str(place), read_data)}


def is_our_temporary(name: str) -> bool:
    return re.fullmatch(r"\..+\.[0-9a-f]{32}\.tmp", name) is not None


def on_disk(place: Path) -> dict[str, bytes]:
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in place.rglob("*")
        # A killed write leaves a temporary file, which nothing reads and the next change sweeps.
        if path.is_file() and "_floodmark" not in path.parts and not is_our_temporary(path.name)
    }


@pytest.mark.parametrize("name", RULES)
def test_what_is_called_repairable_is_mended(name: str, tmp_path: Path) -> None:
    place = broken(name, tmp_path)
    before = on_disk(place)
    share = getattr(example("checkpoint", name.replace("-", "_")), "SHARE", None)
    findings = api.doctor(str(place), share)
    repairable = {item.rule for item in findings if item.repairable}
    if not repairable:
        return
    change = api.repair(str(place), accept=EVERYTHING, read_data=bool(share), carrying=GO)
    assert change.executed
    left = rules_found(place)
    assert not left & repairable, change.plan.notes
    assert left <= {item.rule for item in findings if not item.repairable} | LEAVES.get(name, set())
    api.undo(str(place), carrying=GO)
    assert on_disk(place) == before


def test_a_sound_checkpoint_is_left_alone(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("3.5/sales-hdfs"))
    change = api.repair(str(place), carrying=GO)
    assert not change.executed
    assert change.plan.steps == ()
    assert not (place / "_floodmark").exists()


def test_a_refusal_says_what_each_name_accepts(tmp_path: Path) -> None:
    """Its last line can be pasted: no name in it may be one that was not explained."""
    plan = api.repair(str(broken("state-version-missing", tmp_path))).plan
    running = Consequence("--accept maybe-running", "Batch 2 is in flight.", True)
    plan = replace(
        plan,
        consequences=(running, *plan.consequences),
        options={**plan.options, NEEDED: ["maybe-running", "repeats"]},
    )
    with pytest.raises(WouldLose, match="maybe-running and repeats have to be accepted") as error:
        refuse_unaccepted(plan)
    first, second = error.value.why.splitlines()
    assert first == "maybe-running: Batch 2 is in flight."
    assert second.startswith("repeats: Batch 2 is read again")
    assert "--sink FOLDER" in second
    assert error.value.do.endswith("--accept maybe-running --accept repeats")


def test_what_may_repeat_records_is_counted_and_accepted_by_name(tmp_path: Path) -> None:
    place = broken("state-version-missing", tmp_path)
    with pytest.raises(WouldLose, match="repeats") as error:
        api.repair(str(place), carrying=GO)
    assert "Batch 2 is read again (1 file of source 0)" in error.value.why
    assert "state-version-missing" in rules_found(place)
    api.repair(str(place), accept=["repeats"], carrying=GO)
    found = api.inspect(str(place))
    assert (found.committed_batch, found.in_flight_batch) == (1, 2)
    assert rules_found(place) == set()


def test_a_saved_plan_that_risks_something_is_not_applied_unaccepted(tmp_path: Path) -> None:
    place = broken("state-version-missing", tmp_path)
    plan = tmp_path / "plan.json"
    save_plan(api.repair(str(place)).plan, str(plan))
    with pytest.raises(WouldLose, match="repeats"):
        api.apply(str(plan), carrying=GO)


@pytest.mark.parametrize("path", ["offsets/2", "commits/1", "metadata", "state/0/1/2.delta"])
def test_a_flipped_bit_is_put_back(path: str, tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("3.5/sales-hdfs"))
    data = (place / path).read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0x10
    (place / path).write_bytes(bytes(flipped))
    found = api.doctor(str(place), 1.0)
    assert found
    assert all(item.repairable for item in found)
    change = api.repair(str(place), read_data=True, carrying=GO)
    assert [step.path for step in change.plan.steps] == [path]
    assert (place / path).read_bytes() == data


def test_a_rate_sources_start_is_told_by_its_batches(tmp_path: Path) -> None:
    before = int(golden("3.5/rate")["sources/0/0"].split(b"\n")[1])
    place = broken("source-start-unreadable", tmp_path)
    with pytest.raises(WouldLose, match="changed-files"):
        api.repair(str(place), carrying=GO)
    api.repair(str(place), accept=["changed-files"], carrying=GO)
    after = int((place / "sources/0/0").read_bytes().split(b"\n")[1])
    assert before <= after < before + 1000
    assert rules_found(place) == set()


@pytest.mark.parametrize("name", LEAVES)
def test_what_spark_writes_anew_is_removed_if_the_query_is_the_same(
    name: str, tmp_path: Path
) -> None:
    place = broken(name, tmp_path)
    with pytest.raises(WouldLose, match="unchanged-query"):
        api.repair(str(place), carrying=GO)
    change = api.repair(str(place), accept=["unchanged-query"], carrying=GO)
    assert {step.do for step in change.plan.steps} == {"delete"}
    assert rules_found(place) == LEAVES[name]


def test_the_query_id_comes_from_the_notes(tmp_path: Path) -> None:
    place = broken("metadata-missing", tmp_path)
    samples.write(place, {"_floodmark/starts/1.json": b'{"query_id":"0f6e0000-0000-4000-8000-1"}'})
    api.repair(str(place), carrying=GO)
    assert (place / "metadata").read_bytes() == b'{"id":"0f6e0000-0000-4000-8000-1"}'


def test_the_query_id_comes_from_the_delta_table(tmp_path: Path) -> None:
    place = broken("metadata-missing", tmp_path)
    log = (
        b'{"commitInfo":{}}\n{"txn":{"appId":"5a0c362f-824f-43a3-940d-3be0f4a399fd","version":%d}}'
    )
    table = samples.write(
        tmp_path / "out", {f"_delta_log/{n:020d}.json": log % n for n in range(3)}
    )
    api.repair(str(place), sink=str(table), carrying=GO)
    assert b"5a0c362f-824f-43a3-940d-3be0f4a399fd" in (place / "metadata").read_bytes()


LOST = [
    "metadata",
    "offsets/1",
    "offsets/2",
    "commits/2",
    "sources/0/1",
    "state/0/1/2.delta",
    "state/0/0/_metadata/schema",
]


@pytest.mark.parametrize("path", LOST)
@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_backup_gives_back_what_it_has(path: str, how: str, tmp_path: Path) -> None:
    tree = golden("3.5/sales-hdfs")
    place = samples.write(tmp_path / "cp", tree)
    api.backup(str(place), str(tmp_path / "repo"), carrying=GO)
    if how == "missing":
        (place / path).unlink()
    else:
        (place / path).write_bytes(b"")
    assert api.doctor(str(place), 1.0)
    api.repair(str(place), from_backup=str(tmp_path / "repo"), read_data=True, carrying=GO)
    assert (place / path).read_bytes() == tree[path]
    assert rules_found(place) == set()


CODEC = "spark.sql.streaming.stateStore.compression.codec"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.mark.parametrize("batches", [[2], [1], [0], [1, 2], [0, 1]])
@pytest.mark.parametrize(("key", "wrong"), [(CODEC, "zstd"), (PROVIDER, ROCKSDB)])
def test_what_the_state_was_written_with_is_said_again(
    key: str, wrong: str, batches: list[int], tmp_path: Path
) -> None:
    tree = golden("3.5/sales-hdfs")
    edited = dict(tree)
    for batch in batches:
        set_conf(edited, batch, key, wrong)
    place = samples.write(tmp_path / "cp", edited)
    assert {(item.rule, item.repairable) for item in api.doctor(str(place))} == {
        ("conf-changed", True)
    }
    api.repair(str(place), carrying=GO)
    assert rules_found(place) == set()
    mended = on_disk(place)
    for batch in range(3):
        assert metadata(mended, batch) == metadata(tree, batch)
        assert (
            mended[f"offsets/{batch}"].split(b"\n")[2:] == tree[f"offsets/{batch}"].split(b"\n")[2:]
        )


def test_a_setting_that_no_file_proves_is_left(tmp_path: Path) -> None:
    tree = golden("3.5/sales-hdfs")
    set_conf(tree, 2, "spark.sql.streaming.aggregation.stateFormatVersion", "1")
    for batch in range(3):  # nor is a codec proven that no entry says
        set_conf(tree, batch, CODEC, ("zstd", "snappy", "snappy")[batch])
    place = samples.write(tmp_path / "cp", tree)
    found = api.doctor(str(place))
    assert [item.repairable for item in found] == [False, False]
    assert api.repair(str(place), carrying=GO).plan.steps == ()


@pytest.mark.parametrize("newest", [2, 1])
def test_state_that_is_all_gone_comes_back_from_a_backup(newest: int, tmp_path: Path) -> None:
    """An older backup has an older state: the stream goes back to where that one stands."""
    tree = golden("3.5/sales-hdfs")
    later = re.compile(rf"(offsets|commits)/\.?[{newest + 1}-9].*|state/.*/\.?[{newest + 2}-9].*")
    place = samples.write(
        tmp_path / "cp", {path: data for path, data in tree.items() if not later.fullmatch(path)}
    )
    api.backup(str(place), str(tmp_path / "repo"), carrying=GO)
    samples.write(place, tree)
    made = example("checkpoint", "state_gone")
    note = samples.write(place, {"_floodmark/starts/0.json": json.dumps(made.NOTE).encode()})
    shutil.rmtree(note / "state")
    assert {item.rule: item.repairable for item in api.doctor(str(place))} == {"state-gone": False}

    assert api.repair(str(place), carrying=GO).plan.steps == ()
    asked = {"from_backup": str(tmp_path / "repo"), "accept": ("repeats",)}
    change = api.repair(str(place), carrying=GO, **asked)
    assert rules_found(place) == set()
    assert change.plan.options["needs_accepted"] == ([] if newest == 2 else ["repeats"])
    state = {path: data for path, data in on_disk(place).items() if path.startswith("state/")}
    assert state.items() <= tree.items()
    assert f"state/0/1/{newest + 1}.delta" in state
    assert (place / "commits" / "2").exists() == (newest == 2)


def test_a_backup_of_another_stream_is_not_used(tmp_path: Path) -> None:
    other = samples.write(tmp_path / "other", golden("3.5/dedup"))
    api.backup(str(other), str(tmp_path / "repo"), carrying=GO)
    place = broken("state-schema-missing", tmp_path)
    change = api.repair(str(place), from_backup=str(tmp_path / "repo"), carrying=GO)
    assert change.plan.steps == ()
    assert "state-schema-missing" in change.plan.notes[0]


@pytest.mark.parametrize("name", ["state-version-missing", "commits-behind", "offset-gap"])
def test_killed_at_any_moment_it_is_finished_or_taken_back(name: str, tmp_path: Path) -> None:
    place = broken(name, tmp_path)
    before = on_disk(place)
    with dying(None) as counted:
        api.repair(str(place), accept=EVERYTHING, carrying=GO)
    mended = on_disk(place)
    api.undo(str(place), carrying=GO)
    for at in range(1, counted.count + 1, 3):
        shutil.rmtree(place)
        samples.write(place, before)
        with contextlib.suppress(Killed), dying(at):
            api.repair(str(place), accept=EVERYTHING, carrying=GO)
        if at % 2:
            try:
                api.repair(str(place), accept=EVERYTHING, carrying=GO)
            except Unfinished:  # it never goes on by itself
                api.resume(str(place), carrying=GO)
            found = on_disk(place)
            # A new query id is another one in each repair.
            assert found == {**mended, "metadata": found["metadata"]}, at
        else:
            with contextlib.suppress(NoAnswer):
                api.undo(str(place), carrying=GO)
            assert on_disk(place) == before, at


@pytest.mark.parametrize("kind", ["delta", "parquet", "foreachBatch", None])
def test_of_a_sink_whose_log_was_not_read_nothing_is_known(kind: str | None) -> None:
    """`toTable` leaves no path in the notes, so what the table has cannot be asked."""
    note = {"sink": kind, "output_mode": "Append"} if kind else None
    sink = known_sink(note, None, lambda place: pytest.fail(f"{place} was opened"))
    assert sink.may_have("some-id", 7)


def test_only_delta_replaces_its_output_in_complete_mode() -> None:
    def sink(kind: str) -> KnownSink:
        return known_sink({"sink": kind, "output_mode": "Complete"}, None, None)

    assert sink("delta").replaces
    assert not sink("foreachBatch").replaces
    assert not sink("kafka").replaces


def test_an_entry_without_a_source_can_be_given_a_setting(tmp_path: Path) -> None:
    """A commit's bytes under an offset entry's name: two lines, where `repair` looked for three."""
    tree = golden("4.3/sales-format-2")
    tree["offsets/2"] = tree["commits/2"]
    kept = {path: data for path, data in tree.items() if "/." not in path}
    plan = api.repair(str(samples.write(tmp_path / "cp", kept))).plan
    assert "offsets/2" in {step.path for step in plan.steps}
