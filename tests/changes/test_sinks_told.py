"""What a plan says of each sink, in words and as ranges of batches, and what it asks for first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.plan import Consequence, Plan, render_plan
from floodmark.changes.plan.parsing import parse_plan
from floodmark.changes.sinks import DELTA, EVERY, FILES, REST
from floodmark.errors import FloodmarkError, WouldLose


def noted(sink: str, place: Path | None = None, mode: str = "append") -> samples.Tree:
    options = {} if place is None else {"path": str(place)}
    note = {"sink": sink, "sink_options": options, "output_mode": mode}
    return {"_floodmark/starts/1.json": json.dumps(note).encode()}


def sink_log(batches: int) -> samples.Tree:
    return {f"_spark_metadata/{batch}": b"v1" for batch in range(batches)}


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def by_sink(plan: Plan) -> dict[str, Consequence]:
    return {item.sink: item for item in plan.consequences}


def backed_up(folder: Path, note: samples.Tree, ran: int, in_flight: bool = False) -> Path:
    """A stream that was backed up after batch 1 and has planned `ran` batches by now."""
    cp = samples.write(folder / "cp", samples.logs(range(3 if in_flight else 2), range(2)) | note)
    api.backup(str(cp), str(folder / "repo"), carrying=GO)
    samples.write(cp, samples.logs(range(ran), range(ran)))
    return cp


def query_id(cp: Path) -> str | None:
    return api.inspect(str(cp)).query_id


@pytest.mark.parametrize("place", ["cp", "elsewhere"])
def test_restore_over_a_stream_that_ran_on(tmp_path: Path, place: str) -> None:
    backed_up(tmp_path, {}, 4)
    goal = tmp_path / place
    plan = api.restore(str(tmp_path / "repo"), str(goal)).plan
    assert {kind: (item.again, item.skips) for kind, item in by_sink(plan).items()} == {
        DELTA: ((2, 3), None),
        FILES: (None, (2, 3)),
        REST: ((2, 3), None),
        EVERY: (None, None),  # no sink was asked
    }
    assert plan.unaccepted == ("repeats", "skips")
    with pytest.raises(WouldLose, match="--accept repeats --accept skips") as refused:
        api.restore(str(tmp_path / "repo"), str(goal), carrying=GO)
    assert "SKIPS new batches up to 3" in refused.value.why
    api.restore(str(tmp_path / "repo"), str(goal), accept=plan.unaccepted, carrying=GO)
    assert query_id(goal) not in (samples.QUERY_ID, None)


def test_nothing_ran_since_the_snapshot(tmp_path: Path) -> None:
    cp = backed_up(tmp_path, {}, 2)
    plan = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert plan.unaccepted == ()
    goes_on, unasked = plan.consequences
    assert goes_on.words == "goes on with the next batch: no batch is repeated"
    assert unasked.words.startswith("was NOT ASKED whether another copy of this checkpoint has run")
    assert not unasked.certain


def test_the_batch_in_flight_of_a_snapshot_keeps_its_number(tmp_path: Path) -> None:
    cp = backed_up(tmp_path, noted("kafka"), 3, in_flight=True)
    plan = api.restore(str(tmp_path / "repo"), str(cp), carrying=GO).plan
    kafka, unasked = plan.consequences
    assert "NOT ASKED" in unasked.words
    assert (kafka.again, kafka.certain) == ((2, 2), False)
    assert query_id(cp) == samples.QUERY_ID


def test_a_batch_in_flight_that_was_planned_otherwise(tmp_path: Path) -> None:
    cp = backed_up(tmp_path, noted("delta"), 3, in_flight=True)
    samples.write(cp, {"offsets/2": samples.offset_entry(2, samples.kafka_offset(9))})
    assert api.restore(str(tmp_path / "repo"), str(cp)).plan.unaccepted == ("repeats",)


@pytest.mark.parametrize("place", ["cp", "elsewhere"])
def test_a_checkpoint_that_is_lost_leaves_nobody_who_knows(tmp_path: Path, place: str) -> None:
    cp = backed_up(tmp_path, {}, 4)
    cp.rename(tmp_path / "out of sight")
    goal = tmp_path / place
    plan = api.restore(str(tmp_path / "repo"), str(goal)).plan
    assert plan.unaccepted == ("repeats", "skips")
    assert any("Nothing says whether" in note for note in plan.notes)
    kept = api.restore(str(tmp_path / "repo"), str(goal), keep_identity=True, carrying=GO).plan
    assert "it SKIPS new batches of the same numbers" in by_sink(kept)[DELTA].words
    assert query_id(goal) == samples.QUERY_ID


def delta_table(folder: Path, batches: int) -> Path:
    for batch in range(batches):
        txn = {"txn": {"appId": samples.QUERY_ID, "version": batch}}
        samples.write(folder, {f"_delta_log/{batch:020d}.json": json.dumps(txn).encode()})
    return folder


@pytest.mark.parametrize(("has", "needs"), [(2, ()), (3, ()), (4, ("repeats",))])
def test_a_delta_table_knows_how_far_the_query_ran(
    tmp_path: Path, has: int, needs: tuple[str, ...]
) -> None:
    """The snapshot has batch 2 in flight; the checkpoint itself is lost."""
    table = delta_table(tmp_path / "table", has)
    cp = backed_up(tmp_path, noted("delta", table), 4, in_flight=True)
    cp.rename(tmp_path / "out of sight")
    plan = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert plan.unaccepted == needs
    assert any(f"has batches up to {has - 1} of this query" in note for note in plan.notes)


def test_a_table_that_was_asked_leaves_nothing_open(tmp_path: Path) -> None:
    table = delta_table(tmp_path / "table", 2)
    cp = backed_up(tmp_path, noted("delta", table), 2)
    plan = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert [item.words for item in plan.consequences] == [
        "goes on with the next batch: no batch is repeated"
    ]
    other = {"txn": {"appId": "another", "version": 9}}
    samples.write(table, {f"_delta_log/{2:020d}.json": json.dumps(other).encode()})
    plan = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert any("highest is 9 of another" in note for note in plan.notes)


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_a_sink_that_another_copy_has_fed_is_ahead_of_an_upgrade(tmp_path: Path, sink: str) -> None:
    """The upgraded copy ran on to batch 4; then the first checkpoint is upgraded again."""
    out = tmp_path / "out"
    if sink == "delta":
        delta_table(out, 2)
    else:
        samples.write(out, sink_log(2))
    cp = samples.write(tmp_path / "cp", samples.logs(range(2), range(2)) | noted(sink, out))
    first = api.upgrade(str(cp), str(tmp_path / "first"), carrying=GO).plan
    assert not any(
        "SKIPS" in item.words or "NOT ASKED" in item.words for item in first.consequences
    )
    if sink == "delta":
        delta_table(out, 5)
    else:
        samples.write(out, sink_log(5))
    again = api.upgrade(str(cp), str(tmp_path / "again")).plan
    ahead = again.consequences[0]
    assert (ahead.sink, ahead.skips) == (DELTA if sink == "delta" else FILES, (2, 4))
    assert again.unaccepted == ("skips",)
    with pytest.raises(WouldLose, match="--accept skips"):
        api.upgrade(str(cp), str(tmp_path / "again"), carrying=GO)
    assert api.copy(str(cp), str(tmp_path / "copy")).plan.consequences[0].words == ahead.words
    anew = api.upgrade(str(cp), str(tmp_path / "again"), new_identity=True).plan
    assert bool(anew.unaccepted) is (sink == "parquet")


def test_an_upgrade_says_that_no_sink_was_asked(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(2), range(2)))
    plan = api.upgrade(str(cp), str(tmp_path / "new")).plan
    assert "NOT ASKED" in plan.consequences[-1].words
    assert plan.unaccepted == ()
    copied = api.copy(str(cp), str(tmp_path / "copy")).plan
    assert "NOT ASKED" in copied.consequences[-1].words


def test_in_complete_mode_delta_has_nothing_twice(tmp_path: Path) -> None:
    table = delta_table(tmp_path / "table", 4)
    cp = backed_up(tmp_path, noted("delta", table, "Complete"), 4)
    plan = api.restore(str(tmp_path / "repo"), str(cp), carrying=GO).plan
    assert "each batch replaces the content" in plan.consequences[0].words
    assert query_id(cp) != samples.QUERY_ID


def test_the_noted_file_sink_goes_back_where_it_is_named(tmp_path: Path) -> None:
    out = samples.write(tmp_path / "out", sink_log(4))
    cp = backed_up(tmp_path, noted("parquet", out), 4)
    plan = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert plan.unaccepted == ("skips",)
    assert any(f"--sink {out}" in note for note in plan.notes)
    api.restore(str(tmp_path / "repo"), str(cp), sink=str(out), carrying=GO)
    assert names(out) == set(sink_log(2))
    api.undo(str(cp), sink=str(out), carrying=GO)
    assert names(out) == set(sink_log(4))


def test_elsewhere_the_file_sink_is_taken_back_only_when_it_is_named(tmp_path: Path) -> None:
    """The original may go on: its sink is not touched for a fork."""
    out = samples.write(tmp_path / "out", sink_log(4))
    backed_up(tmp_path, noted("parquet", out), 4)
    goal = str(tmp_path / "elsewhere")
    assert api.restore(str(tmp_path / "repo"), goal).plan.unaccepted == ("skips",)
    api.restore(str(tmp_path / "repo"), goal, sink=str(out), carrying=GO)
    assert names(out) == set(sink_log(2))


def test_a_file_sink_that_was_taken_back_behind_the_snapshot(tmp_path: Path) -> None:
    """As after a rewind of a later day: the output of batch 1 would be gone for good."""
    out = samples.write(tmp_path / "out", sink_log(1))
    cp = backed_up(tmp_path, noted("parquet", out), 2)
    plan = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert plan.consequences[0].lost == (1, 1)
    assert plan.unaccepted == ("loses",)


def test_a_query_id_is_new_every_time(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.sales())
    found = set()
    for place in ("a", "a", "b"):
        new = tmp_path / place
        if new.exists():
            new.rename(tmp_path / "emptied")
        api.upgrade(str(cp), str(new), without_state=True, carrying=GO)
        found.add(query_id(new))
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    for _ in range(2):
        api.rewind(str(cp), to_batch=3, carrying=GO)
        found.add(query_id(cp))
        accept = ["another-query", "repeats", "skips"]
        api.restore(str(tmp_path / "repo"), str(cp), accept=accept, carrying=GO)
        found.add(query_id(cp))
    assert len(found) == 7


def test_a_saved_plan_keeps_its_id(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.sales())
    plan = api.rewind(str(cp), to_batch=3).plan
    saved = tmp_path / "plan.json"
    saved.write_bytes(render_plan(plan))
    assert parse_plan(saved.read_bytes()) == plan
    api.apply(str(saved), carrying=GO)
    first = query_id(cp)
    assert json.dumps(first) in next(s.text for s in plan.steps if s.path == "metadata" and s.text)
    api.apply(str(saved), carrying=GO)
    assert query_id(cp) == first


def test_a_rewind_repeated_with_its_sink_takes_the_sinks_log_back(tmp_path: Path) -> None:
    out = samples.write(tmp_path / "out", sink_log(6))
    cp = samples.write(tmp_path / "cp", samples.logs(range(6), range(6)))
    first = api.rewind(str(cp), to_batch=2, carrying=GO)
    advice = by_sink(first.plan)[FILES]
    assert advice.skips == (3, 5)
    assert "--sink FOLDER" in advice.words
    now = query_id(cp)
    again = api.rewind(str(cp), to_batch=2, sink=str(out), carrying=GO)
    assert again.executed
    assert names(out) == set(sink_log(3))
    assert query_id(cp) == now
    assert by_sink(again.plan).keys() == {FILES}
    assert "already" in api.rewind(str(cp), to_batch=2, sink=str(out), carrying=GO).words
    api.undo(str(cp), sink=str(out), carrying=GO)
    assert names(out) == set(sink_log(6))


@pytest.mark.parametrize(
    ("options", "again", "certain"),
    [
        ({"without_state": True, "from_batch": 0}, (1, 7), True),
        ({"without_state": True}, (7, 7), False),
        ({"restart_numbering": True, "new_identity": True, "from_batch": 2}, (3, 7), True),
        ({"restart_numbering": True, "new_identity": True}, (7, 7), False),
    ],
)
def test_numbers_that_begin_anew_do_not_hide_that_batches_come_again(
    tmp_path: Path, options: dict[str, object], again: tuple[int, int], certain: bool
) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(8), range(7)))
    plan = api.upgrade(str(cp), str(tmp_path / "new"), **options).plan  # type: ignore[arg-type]
    told = by_sink(plan)
    for kind in (DELTA, REST):
        assert (told[kind].again, told[kind].certain) == (again, certain)
        assert told[kind].loses_or_repeats
        assert "a second time" in told[kind].words
    assert told[FILES].skips == (0 if "without_state" in options else 1, 7)


def test_a_kept_identity_makes_delta_skip(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(6), range(6)))
    told = by_sink(api.rewind(str(cp), to_batch=2, keep_identity=True).plan)
    assert (told[DELTA].again, told[DELTA].skips) == (None, (3, 5))


def test_what_is_not_known_by_name_is_not_accepted(tmp_path: Path) -> None:
    with pytest.raises(FloodmarkError, match="there is no such name"):
        api.restore(str(tmp_path), str(tmp_path / "x"), accept=["everything"])


def test_a_file_sinks_log_that_stayed_ahead_is_not_forgotten(tmp_path: Path) -> None:
    """Batch 3 is in its log through a rewind, an upgrade, and whatever comes then."""
    cp = samples.write(tmp_path / "cp", samples.logs(range(4), range(4)))
    quiet = ("maybe-running",)
    api.rewind(str(cp), to_batch=2, accept=quiet, carrying=GO)
    assert by_sink(api.rewind(str(cp), to_batch=1, accept=quiet).plan)[FILES].skips == (2, 3)
    api.upgrade(str(cp), str(tmp_path / "second"), carrying=GO)
    second = str(tmp_path / "second")
    assert by_sink(api.rewind(second, to_batch=1, accept=quiet).plan)[FILES].skips == (2, 3)
    assert by_sink(api.upgrade(second, str(tmp_path / "third")).plan)[FILES].skips == (3, 3)
