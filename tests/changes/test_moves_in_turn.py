"""One move after another, and moves of streams with state: what the plan says of each sink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.plan import Consequence, Plan
from floodmark.changes.sinks import DELTA, FILES, REST


def by_sink(plan: Plan) -> dict[str, Consequence]:
    return {item.sink: item for item in plan.consequences}


def sink_log(folder: Path, batches: int) -> Path:
    return samples.write(folder, {f"_spark_metadata/{n}": b"v1" for n in range(batches)})


def restarted(folder: Path, **options: object) -> Plan:
    new = str(folder / "new")
    return api.upgrade(str(folder / "cp"), new, without_state=True, **options).plan  # type: ignore[arg-type]


def test_a_sink_that_skips_batches_stops_a_query_with_state(tmp_path: Path) -> None:
    """A skipped batch is not computed, and the batch after it wants its state."""
    cp = samples.write(tmp_path / "cp", samples.sales(batches=4, in_flight=False))
    told = by_sink(api.rewind(str(cp), to_batch=1, keep_identity=True).plan)
    assert (told[DELTA].fails_at, told[FILES].fails_at, told[REST].fails_at) == (4, 4, None)
    assert "batches 2 to 3 a second time where they now come under later" in told[FILES].words
    assert 'a query of format("delta") fails at batch 4' in told[DELTA].words
    anew = by_sink(restarted(tmp_path))
    assert (anew[DELTA].fails_at, anew[FILES].fails_at) == (None, 4)


def test_a_sink_that_skips_batches_does_not_stop_a_query_without_state(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(4), range(4)))
    told = by_sink(api.rewind(str(cp), to_batch=1, keep_identity=True).plan)
    assert [item.fails_at for item in told.values()] == [None, None, None]
    assert by_sink(restarted(tmp_path))[FILES].fails_at is None


@pytest.mark.parametrize("known", [True, False])
def test_a_restore_says_that_the_query_fails(tmp_path: Path, known: bool) -> None:
    cp = samples.write(tmp_path / "cp", samples.sales(batches=2, in_flight=False))
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    samples.write(cp, samples.sales(batches=4, in_flight=False))
    if not known:
        cp.rename(tmp_path / "out of sight")
    told = by_sink(api.restore(str(tmp_path / "repo"), str(cp)).plan)
    assert "then a query fails" in told[FILES].words
    assert told[FILES].fails_at == (4 if known else None)


@pytest.mark.parametrize("in_flight", [False, True])
def test_offsets_that_are_given_back_come_twice_to_a_file_sink(
    tmp_path: Path, in_flight: bool
) -> None:
    committed = 4 if in_flight else 5
    cp = samples.write(tmp_path / "cp", samples.logs(range(5), range(committed)))
    out = sink_log(tmp_path / "out", 5)
    given = tmp_path / "offsets.json"
    given.write_text(json.dumps({"orders": {"0": 401}}))
    plan = api.rewind(str(cp), to_offsets=str(given), sink=str(out)).plan
    files = by_sink(plan)[FILES]
    assert files.loses_or_repeats
    assert "the records of all offsets that are given back a second time" in files.words


@pytest.mark.parametrize("in_flight", [False, True])
def test_an_undo_says_that_the_batch_in_flight_comes_again(tmp_path: Path, in_flight: bool) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(5), range(4 if in_flight else 5)))
    api.rewind(str(cp), to_batch=1, carrying=GO)
    told = by_sink(api.undo(str(cp)).plan)
    if in_flight:
        assert (told[REST].again, told[REST].certain) == ((4, 4), False)
        assert "skips batch 4" in told[DELTA].words
    else:
        assert [item.words for item in told.values()] == [
            "goes on with the next batch: no batch is repeated"
        ]


def test_a_sinks_log_does_not_vouch_for_a_batch_that_was_planned_again(tmp_path: Path) -> None:
    """The snapshot's batch in flight has another range than the batch that the sink has."""
    out = sink_log(tmp_path / "out", 3)
    note = {"sink": "parquet", "sink_options": {"path": str(out)}, "output_mode": "append"}
    tree = samples.logs(range(3), range(2)) | {
        "_floodmark/starts/1.json": json.dumps(note).encode()
    }
    cp = samples.write(tmp_path / "cp", tree)
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    samples.write(cp, {"commits/2": samples.commit_entry()})
    same = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert (same.unaccepted, by_sink(same)[FILES].skips) == ((), None)
    samples.write(cp, {"offsets/2": samples.offset_entry(2, samples.kafka_offset(9))})
    other = api.restore(str(tmp_path / "repo"), str(cp)).plan
    assert (other.unaccepted, by_sink(other)[FILES].skips) == (("skips",), (2, 2))


def test_a_restore_over_a_rewound_stream_counts_what_that_has_written(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(2), range(2)))
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    api.rewind(str(cp), to_batch=0, carrying=GO)
    now = api.inspect(str(cp)).query_id
    samples.write(
        cp, samples.logs(range(6), range(6)) | {"metadata": (cp / "metadata").read_bytes()}
    )
    accept = ["another-query"]
    told = by_sink(api.restore(str(tmp_path / "repo"), str(cp), accept=accept).plan)
    for kind in (DELTA, REST):
        assert f"all batches that query {now} has run since then" in told[kind].words
        assert (told[kind].accept, told[kind].certain) == ("repeats", False)


def test_a_log_of_batches_that_were_never_planned_is_not_taken_back_unasked(tmp_path: Path) -> None:
    """They are another query's, and nothing would write them again."""
    cp = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    out = sink_log(tmp_path / "out", 8)
    plan = api.rewind(str(cp), to_batch=1, sink=str(out)).plan
    assert (plan.consequences[0].lost, plan.unaccepted) == ((2, 7), ("loses",))
    sink_log(tmp_path / "own", 3)
    assert api.rewind(str(cp), to_batch=1, sink=str(tmp_path / "own")).plan.unaccepted == ()


@pytest.mark.parametrize("verb", ["upgrade", "copy"])
def test_a_sinks_log_that_a_rewind_left_is_remembered(tmp_path: Path, verb: str) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(6), range(6)))
    api.rewind(str(cp), to_batch=2, carrying=GO)
    move = api.upgrade if verb == "upgrade" else api.copy
    (ahead, *_) = move(str(cp), str(tmp_path / "new")).plan.consequences
    assert (ahead.sink, ahead.skips) == (FILES, (3, 5))
    samples.write(cp, samples.logs(range(3, 6), range(3, 6)))
    plan = move(str(cp), str(tmp_path / "new")).plan
    assert not any(item.skips for item in plan.consequences)


def note(number: int, next_batch: int) -> samples.Tree:
    value = {"sink": "kafka", "next_batch": next_batch, "application": f"code {number}"}
    return {f"_floodmark/starts/{number}.json": json.dumps(value).encode()}


def notes(cp: Path) -> list[str]:
    return sorted(path.name for path in (cp / "_floodmark/starts").glob("*.json"))


def test_a_rewind_takes_back_the_notes_of_later_starts(tmp_path: Path) -> None:
    """A query without a note that runs on would be taken for the code of the later start."""
    tree = samples.logs(range(6), range(6)) | note(1, 0) | note(2, 3)
    cp = samples.write(tmp_path / "cp", tree)
    api.rewind(str(cp), to_batch=2, carrying=GO)
    assert notes(cp) == ["1.json"]
    api.undo(str(cp), carrying=GO)
    assert notes(cp) == ["1.json", "2.json"]
    api.rewind(str(cp), to_batch=3, carrying=GO)
    assert notes(cp) == ["1.json", "2.json"]


def test_a_restore_has_the_notes_of_its_snapshot(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(2), range(2)) | note(1, 0))
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    samples.write(cp, samples.logs(range(5), range(5)) | note(2, 3))
    api.restore(str(tmp_path / "repo"), str(cp), accept=["repeats", "skips"], carrying=GO)
    assert notes(cp) == ["1.json"]
    api.undo(str(cp), carrying=GO)
    assert notes(cp) == ["1.json", "2.json"]
