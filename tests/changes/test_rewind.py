"""The same checkpoint, earlier: what goes, what stays, and what would hurt."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.apply import Change
from floodmark.cli.main import run
from floodmark.errors import BatchPurged, FloodmarkError, NoAnswer, Refused, WouldLose, WrongUse


def crc_of(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def names(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "_floodmark" not in path.parts
    }


def rewound(folder: Path, tree: samples.Tree, **goal: object) -> Change:
    samples.write(folder, tree)
    return api.rewind(str(folder), carrying=GO, **goal)  # type: ignore[arg-type]


def test_later_entries_go_and_the_one_before_stays(tmp_path: Path) -> None:
    rewound(tmp_path, samples.sales(batches=6), to_batch=2)
    left = names(tmp_path)
    assert {n for n in left if n.startswith("offsets/")} == {f"offsets/{n}" for n in range(3)}
    assert {n for n in left if n.startswith("commits/")} == {f"commits/{n}" for n in range(3)}
    assert "sources/0/0" in left
    assert api.inspect(str(tmp_path)).committed_batch == 2


def test_no_orphan_checksum_is_left_to_block_the_name(tmp_path: Path) -> None:
    tree = samples.sales(batches=5)
    rewound(tmp_path, tree | {crc_of(path): b"crc\0" for path in tree}, to_batch=1)
    left = names(tmp_path)
    orphans = {crc_of(path) for path in tree if path not in left} & left
    assert orphans == set()
    assert "offsets/.1.crc" in left
    assert ".metadata.crc" not in left  # its file was replaced, so it would not fit


def test_state_that_later_batches_write_anew_goes(tmp_path: Path) -> None:
    tree = samples.sales(batches=6)
    tree["state/0/1/4.delta.crc"] = b"{}"  # Spark's own checksum, beside its file
    rewound(tmp_path, tree, to_batch=1)
    left = {n for n in names(tmp_path) if n.startswith("state/0/1/")}
    assert left == {"state/0/1/1.delta", "state/0/1/2.delta"}


def test_state_with_unique_ids_stays(tmp_path: Path) -> None:
    tree = samples.logs(range(4), [])
    for batch in range(4):
        ids = json.dumps({"0": [[f"id{batch}"]]})
        tree[f"commits/{batch}"] = (
            f'v2\n{{"nextBatchWatermarkMs":0,"stateUniqueIds":{ids}}}'.encode()
        )
        tree[f"state/0/0/{batch + 1}_id{batch}.zip"] = zip_of()
    tree["state/0/_metadata/metadata"] = samples.operator_metadata(0, 1)
    rewound(tmp_path, tree, to_batch=1)
    assert (tmp_path / "state/0/0/4_id3.zip").exists()
    assert api.inspect(str(tmp_path)).committed_batch == 1


def zip_of(*tables: tuple[str, int]) -> bytes:
    import io
    import zipfile

    listed = [
        {"localFileName": "1.sst", "dfsSstFileName": name, "sizeBytes": size}
        for name, size in tables
    ]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": listed, "numKeys": 1}))
    return buffer.getvalue()


@pytest.mark.parametrize(("table", "fits"), [(b"x" * 7, True), (b"x" * 6, False), (None, False)])
def test_the_tables_that_a_rocksdb_snapshot_names_must_be_there(
    tmp_path: Path, table: bytes | None, fits: bool
) -> None:
    tree = samples.logs(range(3), range(3))
    for version in range(1, 4):
        tree[f"state/0/0/{version}.zip"] = zip_of(("000008-a.sst", 7))
    if table is not None:
        tree["state/0/0/SSTs/000008-a.sst"] = table
    samples.write(tmp_path, tree)
    if fits:
        assert api.rewind(str(tmp_path), to_batch=0).plan.steps
    else:
        with pytest.raises(FloodmarkError, match=r"000008-a\.sst"):
            api.rewind(str(tmp_path), to_batch=0)


def test_state_that_is_purged_cannot_be_gone_back_to(tmp_path: Path) -> None:
    tree = samples.sales(batches=6)
    for partition in range(4):
        for version in (1, 2, 3):
            del tree[f"state/0/{partition}/{version}.delta"]
        tree[f"state/0/{partition}/3.snapshot"] = b"whole"
    samples.write(tmp_path, tree)
    with pytest.raises(BatchPurged, match="the state after batch 1 can no longer be rebuilt"):
        api.rewind(str(tmp_path), to_batch=1)
    assert api.rewind(str(tmp_path), to_batch=2).plan.steps


def test_sinks_that_remember_get_a_new_id(tmp_path: Path) -> None:
    change = rewound(tmp_path, samples.sales(), to_batch=3)
    assert api.inspect(str(tmp_path)).query_id != samples.QUERY_ID
    assert any("batches 4 to 7 a second time" in c.words for c in change.plan.consequences)


def test_keep_identity_says_what_it_means(tmp_path: Path) -> None:
    change = rewound(tmp_path, samples.sales(), to_batch=3, keep_identity=True)
    assert api.inspect(str(tmp_path)).query_id == samples.QUERY_ID
    assert any("SKIPS the batches it has" in note for note in change.plan.notes)


def test_the_file_source_is_said_not_to_go_back(tmp_path: Path) -> None:
    change = rewound(tmp_path, samples.file_stream(), to_batch=0, accept=["out-of-reach"])
    assert any("whatever maxFilesPerTrigger says" in note for note in change.plan.notes)
    assert (tmp_path / "sources/0/3").exists()


def sink_log(batches: int, gone: int = 0) -> samples.Tree:
    tree: samples.Tree = {}
    for batch in range(gone, batches):
        compact = (batch + 1) % 10 == 0
        name = f"{batch}.compact" if compact else str(batch)
        tree[f"_spark_metadata/{name}"] = b"v1"
        tree[f"_spark_metadata/.{name}.crc"] = b"crc\0"
    return tree


def test_the_file_sinks_log_goes_back_too(tmp_path: Path) -> None:
    samples.write(tmp_path / "out", sink_log(6))
    rewound(tmp_path / "cp", samples.sales(batches=6), to_batch=2, sink=str(tmp_path / "out"))
    assert names(tmp_path / "out") == set(sink_log(3))
    with pytest.raises(Refused, match="changes the file sink's log in"):
        api.undo(str(tmp_path / "cp"), carrying=GO)
    with pytest.raises(Refused, match="but --sink names"):
        api.undo(str(tmp_path / "cp"), sink=str(tmp_path / "elsewhere"), carrying=GO)
    assert names(tmp_path / "out") == set(sink_log(3))
    api.undo(str(tmp_path / "cp"), sink=str(tmp_path / "out"), carrying=GO)
    assert names(tmp_path / "out") == set(sink_log(6))


def test_a_sinks_log_that_is_compacted_beyond_the_batch(tmp_path: Path) -> None:
    samples.write(tmp_path / "out", sink_log(12, gone=9))
    tree, sink = samples.logs(range(12), range(12)), str(tmp_path / "out")
    with pytest.raises(WouldLose, match="skips has to be accepted first"):
        rewound(tmp_path / "cp", tree, to_batch=5, sink=sink)
    change = rewound(tmp_path / "cp", tree, to_batch=5, sink=sink, accept=["skips"])
    assert names(tmp_path / "out") == set(sink_log(12, gone=9))
    assert any("stays as it is" in note for note in change.plan.notes)
    assert any("SKIPS new batches up to 11" in c.words for c in change.plan.consequences)


def test_a_sink_that_only_a_note_names_is_said_and_not_touched(tmp_path: Path) -> None:
    samples.write(tmp_path / "out", sink_log(4))
    note = {"sink": "parquet", "sink_options": {"path": str(tmp_path / "out")}}
    tree = samples.logs(range(4), range(4)) | {
        "_floodmark/starts/1.json": json.dumps(note).encode()
    }
    with pytest.raises(WouldLose, match="skips has to be accepted first"):
        rewound(tmp_path / "cp", tree, to_batch=1)
    change = rewound(tmp_path / "cp", tree, to_batch=1, accept=["skips"])
    assert names(tmp_path / "out") == set(sink_log(4))
    assert change.plan.sink is None
    assert any(f"say --sink {tmp_path / 'out'}" in note for note in change.plan.notes)
    assert [c.sink for c in change.plan.consequences] == ["files (csv, json, parquet, orc, text)"]


def test_to_a_time(tmp_path: Path) -> None:
    rewound(tmp_path, samples.sales(), to_time="2026-11-15T00:54:00Z")
    assert api.inspect(str(tmp_path)).committed_batch is not None


@pytest.mark.parametrize(
    ("planned", "error", "words"),
    [
        (range(8), NoAnswer, "before the stream began"),
        (range(3, 8), BatchPurged, "Kafka was not asked"),
    ],
)
def test_a_time_that_is_too_early(
    tmp_path: Path, planned: range, error: type[FloodmarkError], words: str
) -> None:
    samples.write(tmp_path, samples.logs(planned, planned))
    with pytest.raises(error, match=words):
        api.rewind(str(tmp_path), to_time="2001-01-01T00:00:00Z")


def test_to_given_offsets_which_offsets_prints(tmp_path: Path) -> None:
    tree = samples.logs(range(6), range(5))
    samples.write(tmp_path / "cp", tree)
    given = tmp_path / "offsets.json"
    given.write_text('{"orders": {"0": 401}}')
    api.rewind(str(tmp_path / "cp"), to_offsets=str(given), carrying=GO)
    found = api.offsets(str(tmp_path / "cp"))
    assert found.sources[0].offset == {"orders": {"0": 401, "1": 536}}
    assert api.inspect(str(tmp_path / "cp")).in_flight_batch is None
    before = (tmp_path / "cp/offsets/3").read_bytes()
    assert before == (tmp_path / "cp/offsets/4").read_bytes()  # ranges never run backwards


@pytest.mark.parametrize(
    "text",
    ['{"clicks": {"0": 1}}', '{"9": {"orders": {"0": 1}}}', "nonsense", '{"orders": {"0": -2}}'],
)
def test_offsets_that_do_not_fit(tmp_path: Path, text: str) -> None:
    samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    given = tmp_path / "offsets.json"
    given.write_text(text)
    with pytest.raises(FloodmarkError) as caught:
        api.rewind(str(tmp_path / "cp"), to_offsets=str(given))
    assert caught.value.status in (2, 3)


def test_given_offsets_do_not_fit_a_state(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.sales())
    given = tmp_path / "offsets.json"
    given.write_text('{"orders": {"0": 1}}')
    with pytest.raises(WouldLose, match="this stream has state"):
        api.rewind(str(tmp_path / "cp"), to_offsets=str(given))


def test_already_there(tmp_path: Path) -> None:
    samples.write(tmp_path, samples.sales(batches=3, in_flight=False))
    with pytest.raises(NoAnswer, match="already"):
        api.rewind(str(tmp_path), to_batch=2)


def test_spark_gets_the_entry_before_even_if_it_is_purged(tmp_path: Path) -> None:
    tree = samples.logs(range(3, 8), range(3, 8))
    rewound(tmp_path, tree, to_batch=3)
    assert (tmp_path / "offsets/2").read_bytes() == tree["offsets/3"]


@pytest.mark.parametrize("goal", [{}, {"to_batch": 1, "to_time": "2026-11-15T00:00:00Z"}])
def test_one_goal_has_to_be_given(tmp_path: Path, goal: dict[str, object]) -> None:
    with pytest.raises(WrongUse):
        api.rewind(str(tmp_path), **goal)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", [("rewind", "--to-batch", "3"), ("upgrade", "NEW")])
def test_a_partition_that_is_gone_is_not_put_down_to_retention(
    verb: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = samples.write(tmp_path / "cp", samples.sales(5, in_flight=False))
    shutil.rmtree(place / "state/0/1")
    name, *rest = (str(tmp_path / word) if word == "NEW" else word for word in verb)
    assert run([name, str(place), *rest]) == 3
    said = capsys.readouterr().err
    assert "state/0/1 has no state file" in said
    assert f"`floodmark upgrade {place} NEW --without-state`" in said
    assert "minBatchesToRetain" not in said


def test_no_rewind_is_advised_where_no_offset_entry_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = samples.write(tmp_path / "cp", samples.sales(5, in_flight=False))
    shutil.rmtree(place / "offsets")
    assert run(["doctor", str(place)]) == 1
    said = capsys.readouterr().out
    assert "floodmark rewind" not in said
    assert "Restore the folder offsets/ from a backup" in said
    assert run(["rewind", str(place), "--to-batch", "3"]) == 4
    assert "The folder offsets/ was lost" in capsys.readouterr().err


def file_stream(folder: Path, there: int) -> Path:
    """Four input files, seen by the source, of which the first ones are still there."""
    tree = samples.file_stream()
    for path in [path for path in tree if path.startswith("sources/")]:
        tree[path] = tree[path].replace(b"file:///in", f"file://{folder}/in".encode())
    samples.write(folder / "in", {f"day {number}.json": b"{}" for number in range(there)})
    return samples.write(folder / "cp", tree)


def test_input_files_that_are_gone_are_counted_and_named(tmp_path: Path) -> None:
    cp = file_stream(tmp_path, there=2)
    with pytest.raises(WouldLose, match="the stream would go on without them") as refused:
        api.rewind(str(cp), to_batch=0)
    assert "2 of 3 input files to read again are gone" in refused.value.why
    assert f"{tmp_path}/in/day 2.json" in refused.value.why
    assert "reports nothing" in refused.value.do
    plan = api.rewind(str(cp), to_batch=0, accept=["out-of-reach"]).plan
    assert any("OUT OF REACH: source 0: 2 of 3" in note for note in plan.notes)


def test_input_files_that_are_there_are_no_matter(tmp_path: Path) -> None:
    cp = file_stream(tmp_path, there=4)
    assert api.rewind(str(cp), to_batch=0, carrying=GO).executed


def test_an_upgrade_from_an_earlier_batch_looks_for_its_input_too(tmp_path: Path) -> None:
    cp = file_stream(tmp_path, there=2)
    with pytest.raises(WouldLose, match="the stream would go on without them"):
        api.upgrade(str(cp), str(tmp_path / "new"), from_batch=0)
    api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO)


def test_a_restore_looks_for_what_was_read_since(tmp_path: Path) -> None:
    cp = file_stream(tmp_path, there=2)
    later = {name: (cp / name).read_bytes() for name in ("offsets/2", "commits/2")}
    for name in later:
        (cp / name).unlink()
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    samples.write(cp, later)
    with pytest.raises(WouldLose, match="the stream would go on without them"):
        api.restore(str(tmp_path / "repo"), str(cp))


def given(folder: Path, text: str) -> str:
    (folder / "offsets.json").write_text(text)
    return str(folder / "offsets.json")


def test_offsets_that_go_forward_leave_records_out(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    offsets = given(tmp_path, '{"orders": {"0": 999999, "1": 500}}')
    plan = api.rewind(str(cp), to_offsets=offsets).plan
    (told, *rest) = plan.consequences
    assert told.words == (
        "never gets 999,583 records of orders partition 0, from offset 416 to 999998"
    )
    assert all("all offsets that are given back" in item.words for item in rest[:1])
    with pytest.raises(WouldLose, match="skips has to be accepted first") as refused:
        api.rewind(str(cp), to_offsets=offsets, carrying=GO)
    assert "999,583 records" in refused.value.why
    assert api.rewind(str(cp), to_offsets=offsets, accept=["skips"], carrying=GO).executed


def test_offsets_that_only_go_forward_repeat_nothing(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    plan = api.rewind(str(cp), to_offsets=given(tmp_path, '{"orders": {"0": 417}}')).plan
    assert not any("a second time" in item.words for item in plan.consequences)
    assert plan.unaccepted == ("skips",)


def test_a_partition_that_the_stream_never_read(tmp_path: Path) -> None:
    cp = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    with pytest.raises(WrongUse, match="orders has no partition 7 in the checkpoint"):
        api.rewind(str(cp), to_offsets=given(tmp_path, '{"orders": {"7": 1}}'))


def test_an_entry_that_the_list_of_files_has_not(tmp_path: Path) -> None:
    cp = file_stream(tmp_path, there=4)
    with pytest.raises(WrongUse, match="no entry 9 in its list of files"):
        api.rewind(str(cp), to_offsets=given(tmp_path, '{"0": {"logOffset": 9}}'))
    plan = api.rewind(str(cp), to_offsets=given(tmp_path, '{"0": {"logOffset": 3}}')).plan
    assert plan.unaccepted == ("skips",)


def test_a_delta_version_ahead_is_said_to_leave_records_out(tmp_path: Path) -> None:
    tree = samples.logs(range(3), range(3), offset=lambda batch: samples.DELTA_OFFSET)
    cp = samples.write(tmp_path / "cp", tree)
    ahead = samples.DELTA_OFFSET.replace(":7,", ":9,")
    plan = api.rewind(str(cp), to_offsets=given(tmp_path, f'{{"0": {ahead}}}')).plan
    assert plan.unaccepted == ("skips",)


def test_a_source_that_keeps_a_list_of_its_own_does_not_go_back(tmp_path: Path) -> None:
    """Auto Loader's RocksDB has seen the files: a replay is promised only where it is accepted."""
    tree = samples.logs(range(4), range(4), lambda batch: f'{{"seqNum":{batch},"sourceVersion":1}}')
    tree |= {"sources/0/rocksdb/000009.sst": b"x", "sources/0/metadata": b"{}"}
    place = str(samples.write(tmp_path / "cp", tree))
    with pytest.raises(WouldLose, match="may not come") as refused:
        api.rewind(place, to_batch=1)
    assert "source 0 (auto-loader) keeps files of its own" in refused.value.why
    with pytest.raises(WouldLose):
        api.upgrade(place, str(tmp_path / "new"), from_batch=1)
    api.upgrade(place, str(tmp_path / "new"))  # nothing is read again
    change = api.rewind(place, to_batch=1, accept=["out-of-reach"])
    assert any("OUT OF REACH" in note for note in change.plan.notes)


def test_a_source_that_was_not_asked_is_said(tmp_path: Path) -> None:
    """Retention or VACUUM may have taken what is to be read again."""
    cp = samples.write(tmp_path / "cp", samples.logs(range(5), range(5)))
    notes = api.rewind(str(cp), to_batch=2).plan.notes
    assert any("Source 0 (kafka) was not asked whether it still has" in note for note in notes)
    new = str(tmp_path / "new")
    earlier = api.upgrade(str(cp), new, from_batch=2).plan.notes
    assert any("Source 0 (kafka) was not asked" in note for note in earlier)
    assert not any("not asked" in note for note in api.upgrade(str(cp), new).plan.notes)
