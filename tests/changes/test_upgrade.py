"""What a new checkpoint holds, for each kind of source and each choice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.apply import Change
from floodmark.checkpoint.start_note import packed_tree
from floodmark.connectors.files.file_log import names_to_read, parse_source_log
from floodmark.connectors.kafka.offset import parse_kafka_initial
from floodmark.errors import (
    BatchPurged,
    MalformedFile,
    NoAnswer,
    NotACheckpoint,
    NotEmpty,
    StateFileMissing,
    WouldLose,
    WrongUse,
)
from plan_trees import plan


def upgraded(folder: Path, tree: samples.Tree, **options: object) -> tuple[Change, Path]:
    samples.write(folder / "cp", tree)
    change = api.upgrade(str(folder / "cp"), str(folder / "new"), carrying=GO, **options)  # type: ignore[arg-type]
    return change, folder / "new"


def names(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "_floodmark" not in path.parts
    }


def test_the_in_flight_batch_is_carried_over_uncommitted(tmp_path: Path) -> None:
    tree = samples.sales(batches=8)
    _, new = upgraded(tmp_path, tree)
    found = api.inspect(str(new))
    assert (found.committed_batch, found.in_flight_batch) == (6, 7)
    assert found.query_id == samples.QUERY_ID
    for path in ("offsets/5", "offsets/6", "offsets/7", "commits/6", "sources/0/0"):
        assert (new / path).read_bytes() == tree[path]
    assert not (new / "offsets/4").exists()
    assert {p.name for p in (new / "state/0/3").iterdir()} == {f"{v}.delta" for v in range(1, 8)}


def test_the_state_of_the_in_flight_batch_goes_along(tmp_path: Path) -> None:
    """A sink that has the batch skips it, so that no one computes its state again."""
    tree = samples.sales(batches=4)
    tree |= {f"state/0/{partition}/4.delta": b"in flight" for partition in (0, 2)}
    _, new = upgraded(tmp_path, tree)
    assert {p.name for p in new.glob("state/0/*/4.delta")} == {"4.delta"}
    assert len(list(new.glob("state/0/*/4.delta"))) == 2


def test_nothing_is_changed_without_execute(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.sales())
    change = api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"))
    assert not change.executed
    assert not (tmp_path / "new").exists()
    assert change.as_json["plan"]["verb"] == "upgrade"
    assert {step["do"] for step in change.as_json["plan"]["steps"]} == {"copy"}


def test_without_a_batch_in_flight_the_next_one_follows(tmp_path: Path) -> None:
    _, new = upgraded(tmp_path, samples.sales(batches=3, in_flight=False))
    found = api.inspect(str(new))
    assert (found.committed_batch, found.in_flight_batch) == (2, None)


def test_a_first_batch_in_flight_is_carried_over_with_where_it_began(tmp_path: Path) -> None:
    _, new = upgraded(tmp_path, samples.sales(batches=1))
    described = {"state/0/_metadata/metadata", "state/0/0/_metadata/schema"}
    assert names(new) == {"metadata", "offsets/0", "sources/0/0"} | described


def test_a_new_identity_is_new_and_always_the_same(tmp_path: Path) -> None:
    change, new = upgraded(tmp_path, samples.sales(), new_identity=True)
    found = api.inspect(str(new)).query_id
    assert found not in (None, samples.QUERY_ID)
    again = api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), new_identity=True)
    assert again.plan.id == change.plan.id


def test_restarted_numbers_begin_at_zero_with_the_position_kept(tmp_path: Path) -> None:
    tree = samples.logs(range(5), range(4))
    change, new = upgraded(tmp_path, tree, restart_numbering=True)
    assert (new / "offsets/0").read_bytes() == tree["offsets/3"]
    assert (new / "offsets/1").read_bytes() == tree["offsets/4"]
    assert names(new) == {"metadata", "offsets/0", "offsets/1", "commits/0"}
    assert any("DROPS every batch up to 4" in c.words for c in change.plan.consequences)


def test_restarted_numbers_do_not_fit_a_state(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.sales())
    with pytest.raises(WouldLose, match="the state keeps its numbers"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), restart_numbering=True)


def test_a_dropped_batch_never_gives_its_number_to_other_records(tmp_path: Path) -> None:
    tree = samples.logs(range(5), range(4))
    _, new = upgraded(tmp_path, tree, drop_in_flight=True)
    assert (new / "offsets/4").read_bytes() == tree["offsets/3"]
    assert (new / "commits/4").read_bytes() == tree["commits/3"]
    assert api.inspect(str(new)).committed_batch == 4


def test_a_number_that_is_left_out_is_a_hole_in_the_log_of_a_file_sink(tmp_path: Path) -> None:
    """Spark reads that log number by number: it does not read the folder at all then."""
    change, _ = upgraded(tmp_path, samples.logs(range(5), range(4)), drop_in_flight=True)
    told = {one.sink: one.words for one in change.plan.consequences}
    (files,) = [words for sink, words in told.items() if sink.startswith("files")]
    assert "printf v1 > FOLDER/_spark_metadata/4" in files
    assert not any("printf" in words for sink, words in told.items() if words != files)


def test_a_dropped_batch_moves_the_state(tmp_path: Path) -> None:
    _, new = upgraded(tmp_path, samples.sales(batches=4), drop_in_flight=True)
    found = sorted(path.name for path in (new / "state/0/0").iterdir() if path.is_file())
    assert found == ["1.snapshot", "2.delta", "3.delta", "4.delta"]


def test_from_an_earlier_batch(tmp_path: Path) -> None:
    tree = samples.logs(range(6), range(5))
    _, new = upgraded(tmp_path, tree, from_batch=2)
    assert (new / "offsets/5").read_bytes() == tree["offsets/2"]
    assert api.inspect(str(new)).committed_batch == 5


@pytest.mark.parametrize(("batch", "error"), [(99, WrongUse), (-1, WrongUse), (3, BatchPurged)])
def test_a_batch_that_is_not_there(tmp_path: Path, batch: int, error: type[Exception]) -> None:
    samples.write(tmp_path / "cp", samples.logs(range(10, 14), range(10, 13)))
    with pytest.raises(error):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), from_batch=batch)


def test_a_topic_gets_its_new_name_everywhere(tmp_path: Path) -> None:
    _, new = upgraded(tmp_path, samples.sales(), map_topic=["orders=sales"])
    assert list(api.offsets(str(new)).sources[0].offset) == ["sales"]
    initial = parse_kafka_initial((new / "sources/0/0").read_bytes())
    assert initial.offset == {"sales": {0: 392, 1: 491}}
    assert api.inspect(str(new)).in_flight_batch == 7


@pytest.mark.parametrize("pair", ["clicks=sales", "orders", "=x"])
def test_a_topic_that_is_not_there(tmp_path: Path, pair: str) -> None:
    samples.write(tmp_path / "cp", samples.sales())
    with pytest.raises(WrongUse):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), map_topic=[pair])


def seen(new: Path) -> list[str]:
    folder = new / "sources/0"
    entries = names_to_read(path.name for path in folder.iterdir())
    logs = [parse_source_log((folder / name).read_bytes()) for name in entries]
    return [file.path for log in logs for file in log]


def long_file_stream(entries: int = 23) -> samples.Tree:
    def line(number: int) -> str:
        return f'{{"path":"file:///in/{number}.json","timestamp":{number},"batchId":{number}}}'

    tree = samples.logs(
        range(entries - 3, entries), range(entries - 3, entries), lambda b: f'{{"logOffset":{b}}}'
    )
    for number in range(entries):
        compact = (number + 1) % 10 == 0
        lines = [line(n) for n in range(number + 1)] if compact else [line(number)]
        name = f"{number}.compact" if compact else str(number)
        tree[f"sources/0/{name}"] = "\n".join(["v1", *lines]).encode()
    return tree


def test_the_list_of_seen_files_is_carried_over_compacted(tmp_path: Path) -> None:
    _, new = upgraded(tmp_path, long_file_stream())
    assert seen(new) == [f"file:///in/{number}.json" for number in range(23)]
    assert {p.name for p in (new / "sources/0").iterdir()} == {"19.compact", "20", "21", "22"}


def test_a_hole_in_the_list_of_seen_files_is_not_carried_over(tmp_path: Path) -> None:
    tree = long_file_stream()
    del tree["sources/0/21"]
    samples.write(tmp_path / "cp", tree)
    with pytest.raises(Exception, match="entry 21 of the file source's log is missing"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"))


@pytest.mark.parametrize("without_state", [False, True])
def test_a_list_of_seen_files_that_is_gone_is_refused(tmp_path: Path, without_state: bool) -> None:
    tree = {k: v for k, v in long_file_stream().items() if not k.startswith("sources/")}
    samples.write(tmp_path / "cp", tree)
    with pytest.raises(WouldLose, match="list of seen files in sources/0 ends before entry 22"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), without_state=without_state)


def test_a_delta_sources_index_goes_along(tmp_path: Path) -> None:
    inside = samples.DELTA_OFFSET.replace('"index":-1', '"index":3')
    _, new = upgraded(tmp_path, samples.logs(range(2), range(2), lambda batch: inside))
    assert api.offsets(str(new)).sources[0].offset["index"] == 3


def test_named_sources_of_a_v2_log(tmp_path: Path) -> None:
    tree = {"metadata": b'{"id":"x"}', "sources/clicks/0": b'\0v1\n{"web":{"0":1}}'}
    for batch in range(2):
        metadata = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": batch, "conf": {}})
        tree[f"offsets/{batch}"] = (
            f'v2\n{metadata}\norders:{{"logOffset":{batch}}}\nclicks:{{"web":{{"0":9}}}}'.encode()
        )
    for number in range(2):
        tree[f"sources/orders/{number}"] = (
            f'v1\n{{"path":"file:/in/{number}","timestamp":1,"batchId":{number}}}'.encode()
        )
    tree["commits/0"] = samples.commit_entry()
    _, new = upgraded(tmp_path, tree, map_topic=["web=site"])
    text = (new / "offsets/1").read_text()
    assert 'clicks:{"site":{"0":9}}' in text
    assert 'orders:{"logOffset":1}' in text
    assert (new / "sources/orders/1").exists()
    assert b"site" in (new / "sources/clicks/0").read_bytes()


def test_without_state_kafka_begins_where_the_old_stream_stood(tmp_path: Path) -> None:
    change, new = upgraded(tmp_path, samples.sales(batches=8), without_state=True)
    assert names(new) == {"metadata", "sources/0/0"}
    initial = parse_kafka_initial((new / "sources/0/0").read_bytes())
    assert initial.offset == {"orders": {0: 448, 1: 554}}
    start = json.loads((new / "_floodmark/start.json").read_text())
    assert start["sources"] == [{"kind": "kafka", "offsets": {"orders": {"0": 448, "1": 554}}}]
    assert any("begin empty" in note for note in change.plan.notes)


def test_a_start_file_is_what_run_reads(tmp_path: Path) -> None:
    from floodmark.engine.pipelines.start_positions import read_start

    _, new = upgraded(
        tmp_path,
        samples.logs(range(2), range(2), lambda batch: samples.DELTA_OFFSET),
        without_state=True,
    )
    assert read_start(new / "_floodmark/start.json").delta() == {"startingVersion": "7"}


def test_async_progress_leaves_numbers_out(tmp_path: Path) -> None:
    tree = samples.logs([0, 3, 7], [0, 3])
    _, new = upgraded(tmp_path, tree)
    assert (new / "offsets/6").read_bytes() == tree["offsets/3"]
    assert (new / "offsets/7").read_bytes() == tree["offsets/7"]
    found = api.inspect(str(new))
    assert (found.committed_batch, found.in_flight_batch) == (6, 7)


def test_batches_without_commits_are_not_guessed(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.logs(range(6), range(3)))
    with pytest.raises(WouldLose, match="planned and not committed"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"))


def test_spark_2_1_kept_no_commits(tmp_path: Path) -> None:
    _, new = upgraded(tmp_path, samples.logs(range(3), []))
    found = api.inspect(str(new))
    assert (found.committed_batch, found.in_flight_batch) == (1, 2)


def test_state_that_is_not_whole_is_not_carried_over(tmp_path: Path) -> None:
    tree = samples.sales()
    del tree["state/0/2/5.delta"]
    samples.write(tmp_path / "cp", tree)
    with pytest.raises(StateFileMissing, match=r"state/0/2/5\.delta is missing"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"))


@pytest.mark.parametrize(("next_batch", "refused"), [(2, True), (7, False)])
def test_state_that_only_the_notes_tell_of(next_batch: int, refused: bool, tmp_path: Path) -> None:
    tree = {k: v for k, v in samples.sales().items() if not k.startswith("state/")}
    note = {"next_batch": next_batch, "tree": packed_tree(plan()), "floodmark": "start-note"}
    tree["_floodmark/starts/1.json"] = json.dumps(note).encode()
    samples.write(tmp_path / "cp", tree)
    if refused:
        with pytest.raises(WouldLose, match="keeps state, and state/ is gone"):
            api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"))
    else:
        assert api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new")).plan.steps


def test_a_lost_id_is_a_new_one_to_the_sink(tmp_path: Path) -> None:
    tree = {k: v for k, v in samples.sales().items() if k != "metadata"}
    change, _ = upgraded(tmp_path, tree)
    told = {item.sink: item.words for item in change.plan.consequences}
    assert any(
        "does not know the new id: may get batch 7 twice" in words for words in told.values()
    )


def test_a_place_that_holds_something(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.sales())
    samples.write(tmp_path / "new", {"notes.txt": b"mine"})
    with pytest.raises(NotEmpty, match=r"notes\.txt"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"), carrying=GO)
    assert names(tmp_path / "new") == {"notes.txt"}


@pytest.mark.parametrize("new", ["cp", "cp/new", "."])
def test_places_that_overlap(tmp_path: Path, new: str) -> None:
    samples.write(tmp_path / "cp", samples.sales())
    with pytest.raises(WrongUse, match=r"same place|inside the other"):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / new), carrying=GO)


def test_nothing_to_go_on_from(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", {"metadata": b'{"id":"x"}'})
    with pytest.raises(NoAnswer):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"))
    samples.write(tmp_path / "lost", {"metadata": b'{"id":"x"}', "commits/5": b"v1\n{}"})
    with pytest.raises(WouldLose, match="commits/5 is there and no offset entry is"):
        api.upgrade(str(tmp_path / "lost"), str(tmp_path / "new"))
    samples.write(tmp_path / "dstreams", {"checkpoint-1700000000000": b"\xac\xed"})
    with pytest.raises(NotACheckpoint):
        api.upgrade(str(tmp_path / "dstreams"), str(tmp_path / "new"))


@pytest.mark.parametrize("damaged", ["commits/6", "offsets/7", "metadata"])
def test_damage_is_not_carried_over(damaged: str, tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", {**samples.sales(8), damaged: b""})
    with pytest.raises(MalformedFile, match=damaged):
        api.upgrade(str(tmp_path / "cp"), str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def _read_twice() -> samples.Tree:
    """A self-join: two places in the offsets, one source."""
    return {
        path: data + b"\n" + data.splitlines()[-1] if path.startswith("offsets/") else data
        for path, data in samples.file_stream().items()
    }


@pytest.mark.parametrize("anew", [False, True], ids=["carried", "begun anew"])
def test_a_stream_that_is_read_twice_has_one_list_of_files(tmp_path: Path, anew: bool) -> None:
    cp = samples.write(tmp_path / "cp", _read_twice())
    assert not [one for one in api.doctor(str(cp)) if one.rule == "file-source-log-behind"]

    new = tmp_path / "new"
    api.upgrade(
        str(cp),
        str(new),
        new_identity=anew,
        restart_numbering=anew,
        without_state=anew,
        carrying=GO,
    )

    assert [path.name for path in (new / "sources").iterdir()] == ["0"]


def test_a_list_that_is_gone_is_not_anothers(tmp_path: Path) -> None:
    tree = _read_twice()
    tree["offsets/0"] = tree["offsets/0"].rsplit(b"\n", 1)[0] + b'\n{"logOffset":7}'
    cp = samples.write(tmp_path / "cp", tree)

    assert "file-source-log-behind" in {one.rule for one in api.doctor(str(cp))}
    with pytest.raises(WouldLose, match="sources/1 ends before entry 2"):
        api.upgrade(str(cp), str(tmp_path / "new"))


def test_a_plan_says_whose_entry_stands_under_another_number(tmp_path: Path) -> None:
    """It named the entry before as copied, which async progress tracking never wrote."""
    tree = samples.logs([0, 3, 7], [0, 3, 7])
    samples.write(tmp_path / "cp", tree)
    new = str(tmp_path / "new")

    def told(**options: object) -> dict[str, str]:
        change = api.upgrade(str(tmp_path / "cp"), new, **options)  # type: ignore[arg-type]
        return {step.path: step.why for step in change.plan.steps}

    newest = told()
    assert newest["offsets/6"].endswith(": that of batch 7")
    assert newest["offsets/7"] == "where the new stream starts"
    earlier = told(from_batch=3)
    assert earlier["offsets/7"].endswith(": the entry of batch 3")
    whole = samples.write(tmp_path / "whole", samples.logs(range(3), range(3)))
    steps = api.upgrade(str(whole), new).plan.steps
    assert not any("that of batch" in step.why for step in steps)
