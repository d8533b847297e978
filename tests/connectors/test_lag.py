"""How far a stream is behind a Delta table or a folder of files, and what is said if unknown."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.cli.main import run
from floodmark.connectors.behind import SourceLag
from floodmark.connectors.kafka.client_config import parse_client_config

HOUR_MS = 3_600_000


def now_ms() -> int:
    return int(time.time() * 1000)


def only(place: Path | str, **options: Any) -> SourceLag:
    [source] = floodmark.lag(str(place), **options).sources
    return source


def noted(place: Path, kind: str = "x", **options: str) -> None:
    note = {"floodmark": "start-note", "sources": [{"kind": kind, "options": options}]}
    samples.write(place, {"_floodmark/starts/0.json": json.dumps(note).encode()})


# Kafka, without a broker


def test_a_broker_that_only_a_note_names_is_not_asked(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", samples.sales())
    assert "its brokers are not known" in (only(place).error or "")
    noted(place, "kafka", **{"kafka.bootstrap.servers": "127.0.0.1:1"})
    source = only(place)
    assert "--kafka 127.0.0.1:1" in (source.error or "")
    assert "--sources" in (source.error or "")
    assert source.behind.records is None


def test_a_broker_that_does_not_answer_is_said_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(samples.write(tmp_path / "cp", samples.sales()))
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the call and says nothing
        port = silent.getsockname()[1]
        assert run(["lag", place, "--kafka", f"127.0.0.1:{port}", "--timeout", "1"]) == 3
    shown = capsys.readouterr().out
    assert f"Kafka at 127.0.0.1:{port} does not answer within 1 s" in shown
    assert "Traceback" not in shown


def test_a_time_limit_of_nothing_is_wrong_use(tmp_path: Path) -> None:
    place = str(samples.write(tmp_path / "cp", samples.sales()))
    assert run(["lag", place, "--timeout", "0"]) == 2
    with pytest.raises(floodmark.FloodmarkError, match="no time for an answer"):
        floodmark.lag(place, timeout=0)


def test_settings_of_the_client_are_those_of_kafkas_tools() -> None:
    text = (
        "security.protocol=SASL_SSL\n\n! a comment\nbootstrap.servers=elsewhere:9092\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="ann" password="a\\"b";\n'
    )
    assert parse_client_config(text, "file") == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "ann",
        "sasl.password": 'a"b',
    }


# Delta


def add(
    path: str, rows: int | None, size: int = 100, at_ms: int | None = None, **more: Any
) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {
        "add": {
            "path": path,
            "size": size,
            "modificationTime": now_ms() if at_ms is None else at_ms,
            "dataChange": True,
            **stats,
            **more,
        }
    }


def table(
    folder: Path,
    *commits: list[dict[str, Any]],
    identity: str = "a1b2",
    first: int = 0,
    **conf: str,
) -> str:
    metadata = {
        "metaData": {"id": identity, "configuration": {f"delta.{k}": v for k, v in conf.items()}}
    }
    for version, actions in enumerate(commits, first):
        lines = [
            json.dumps(action) for action in ([metadata] if version == first else []) + actions
        ]
        samples.write(folder, {f"_delta_log/{version:020d}.json": "\n".join(lines).encode()})
    return str(folder)


def delta_stream(folder: Path, version: int, index: int = -1, starting: bool = False) -> Path:
    offset = {
        "sourceVersion": 1,
        "reservoirId": "a1b2",
        "reservoirVersion": version,
        "index": index,
        "isStartingVersion": starting,
    }
    tree = samples.logs(range(1), range(1), offset=lambda batch: json.dumps(offset))
    return samples.write(folder, tree)


def test_a_delta_table_is_counted_by_its_log(tmp_path: Path) -> None:
    old = now_ms() - 2 * HOUR_MS
    place = table(
        tmp_path / "table",
        [add("0", 1)],
        [
            add("1a", 10, at_ms=old),
            add("1b", 20, at_ms=old),
            add("optimized", 99, dataChange=False),
        ],
        [add("2", 5, size=50, deletionVector={"cardinality": 2})],
    )
    source = only(delta_stream(tmp_path / "cp", 1, index=0), table=place)
    assert source.error is None
    # Of version 1 the second file, and version 2 without its two deleted rows.
    assert (source.behind.versions, source.behind.files) == (2, 2)
    assert (source.behind.records, source.behind.bytes) == (23, 150)
    assert 2 * HOUR_MS <= (source.behind.ms or 0) < 2 * HOUR_MS + 60_000
    [part] = source.parts
    assert (part.position, part.end, part.earliest) == (1, 3, 0)
    assert 29 * 24 * HOUR_MS < (source.retention_left_ms or 0) <= 30 * 24 * HOUR_MS


def test_a_stream_that_has_read_the_whole_table_is_not_behind(tmp_path: Path) -> None:
    place = table(tmp_path / "table", [add("0", 1)])
    source = only(delta_stream(tmp_path / "cp", 1), table=place)
    behind = source.behind
    assert (behind.records, behind.bytes, behind.ms) == (0, 0, 0)
    assert (behind.versions, behind.files) == (0, 0)


def test_the_first_snapshot_is_counted_in_the_order_in_which_it_is_read(tmp_path: Path) -> None:
    place = table(
        tmp_path / "table",
        [add("newer", 4, at_ms=now_ms() - 10), add("gone", 8, at_ms=1), add("older", 2, at_ms=5)],
        [{"remove": {"path": "gone", "deletionTimestamp": now_ms()}}],
        [add("later", 16)],
    )
    # Index 0 of the snapshot of version 1 is `older`: it is read, `newer` and version 2 are not.
    source = only(delta_stream(tmp_path / "cp", 1, index=0, starting=True), table=place)
    assert (source.behind.records, source.behind.files) == (20, 2)


def test_vacuum_may_reach_files_before_the_log_is_cleaned(tmp_path: Path) -> None:
    place = table(
        tmp_path / "table",
        [add("a", 1)],
        [add("b", 1), {"remove": {"path": "a", "deletionTimestamp": now_ms() - HOUR_MS}}],
        deletedFileRetentionDuration="interval 2 hours",
    )
    left = only(delta_stream(tmp_path / "cp", 0), table=place).retention_left_ms
    assert HOUR_MS - 60_000 < (left or 0) <= HOUR_MS


@pytest.mark.parametrize(
    ("version", "table_options", "words"),
    [
        (9, {}, "ends at 1"),
        (0, {"identity": "other"}, "another table"),
    ],
)
def test_a_table_that_does_not_fit_is_said(
    tmp_path: Path, version: int, table_options: dict[str, Any], words: str
) -> None:
    place = table(tmp_path / "table", [add("a", 1)], [add("b", 1)], **table_options)
    cp = delta_stream(tmp_path / "cp", version)
    assert words in (only(cp, table=place).error or "")
    assert run(["lag", str(cp), "--table", place]) == 3


def test_versions_that_are_cleaned_up_are_lost(tmp_path: Path) -> None:
    place = table(tmp_path / "table", [add("a", 1)], [add("b", 1)], first=5)
    source = only(delta_stream(tmp_path / "cp", 2), table=place)
    assert source.lost == 3
    assert source.behind.versions == 5
    assert source.behind.files == 2
    assert "begins at 5" in " ".join(source.notes)


def test_no_table_no_statistics_a_change_feed_and_a_torn_commit(tmp_path: Path) -> None:
    cp = delta_stream(tmp_path / "cp", 0)
    assert "--table PATH" in (only(cp).error or "")
    assert "no _delta_log" in (only(cp, table=str(tmp_path)).error or "")
    place = table(tmp_path / "table", [add("a", None)])
    source = only(cp, table=place)
    assert (source.behind.records, source.behind.files) == (None, 1)
    assert "1 file has no numRecords" in " ".join(source.notes)
    noted(cp, path=place, readChangeFeed="true")
    source = only(cp)
    assert (source.behind.versions, source.behind.files) == (1, None)
    assert "change feed" in " ".join(source.notes)
    noted(cp, path=place)
    (tmp_path / "table" / "_delta_log" / f"{0:020d}.json").write_bytes(b"{torn")
    source = only(cp)
    assert (source.behind.versions, source.behind.files) == (1, None)
    assert "not counted" in " ".join(source.notes)


def test_the_first_snapshot_by_a_checkpoint_of_the_log(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    place = table(tmp_path / "table", [], [add("c", 4, at_ms=3)], first=10)
    rows = [add("a", 1, at_ms=1), add("b", 2, at_ms=2)]
    saved = tmp_path / "table" / "_delta_log" / f"{9:020d}.checkpoint.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), saved)
    cp = delta_stream(tmp_path / "cp", 11, index=0, starting=True)
    source = only(cp, table=place)
    assert (source.behind.records, source.behind.files) == (6, 2)
    with_sides = [{**rows[0], "sidecar": {"path": "more.parquet"}}]
    parquet.write_table(pa.Table.from_pylist(with_sides), saved)
    source = only(cp, table=place)
    assert source.behind.files is None
    assert "sidecars" in " ".join(source.notes)
    saved.write_bytes(b"PAR1 torn")
    source = only(cp, table=place)
    assert source.behind.files is None
    assert "cannot be read" in " ".join(source.notes)


# Files


def file_stream(folder: Path, taken: dict[str, int], done: int) -> Path:
    """A file source that has listed these files (path: log id), and read them up to `done`."""
    tree = samples.logs(range(1), range(1), offset=lambda batch: json.dumps({"logOffset": done}))
    for path, number in taken.items():
        entry = {"path": path, "timestamp": now_ms() - HOUR_MS, "batchId": number}
        tree[f"sources/0/{number}"] = b"v1\n" + json.dumps(entry).encode()
    return samples.write(folder, tree)


def put(folder: Path, *names: str, size: int = 10, age_ms: int = 0) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, ((now_ms() - age_ms) / 1000,) * 2)


def test_files_that_wait_are_those_listed_and_those_not_seen_yet(tmp_path: Path) -> None:
    folder = tmp_path / "in put"
    put(folder, "a.json", "b.json", "c.json", "_hidden", ".dot", "below/x.json")
    put(folder, "ancient.json", age_ms=30 * 24 * HOUR_MS)
    address = f"file://{tmp_path}/in%20put"
    cp = file_stream(
        tmp_path / "cp", {f"{address}/a.json": 0, f"{address}/b.json": 1, f"{address}/gone": 2}, 0
    )
    source = only(cp, input=str(folder))
    # b is listed, c is not seen yet.
    assert (source.behind.files, source.behind.bytes) == (2, 20)
    assert source.behind.records is None
    assert HOUR_MS <= (source.behind.ms or 0) < HOUR_MS + 60_000
    words = " ".join(source.notes)
    assert "1 file is older than maxFileAge allows" in words
    assert "1 file that the next batch reads is no longer in the folder" in words
    assert [(one.position, one.end) for one in source.parts] == [(1, 3)]
    guessed = only(cp)
    assert guessed.behind.files == 2
    assert "No note names the input folder, so floodmark looked at" in " ".join(guessed.notes)
    noted(cp, path="in put")
    assert only(cp).behind.files == 2
    assert "A note names in put, a relative path" in " ".join(only(cp).notes)


def test_partitions_globs_filters_and_recursion_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    put(folder, "day=1/a.json", "day=2/b.json", "day=2/c.csv")
    cp = file_stream(tmp_path / "cp", {f"file://{folder}/day=1/a.json": 0}, 0)
    assert only(cp, input=str(folder)).behind.files == 2
    assert only(cp, input=f"{folder}/day=*").behind.files == 2
    noted(cp, path=str(folder), pathGlobFilter="*.json")
    assert only(cp).behind.files == 1
    put(folder, "deep/er/d.json")
    noted(cp, path=f"{folder}/deep")
    assert only(cp).behind.files == 0
    noted(cp, path=f"{folder}/deep", recursiveFileLookup="true")
    assert only(cp).behind.files == 1
    monkeypatch.setattr("floodmark.connectors.files.input_folder._MOST_FILES", 2)
    assert "more than 2 files" in (only(cp, input=str(folder)).error or "")
    monkeypatch.setattr("floodmark.connectors.files.input_folder._MOST_FOLDERS", 1)
    assert "more than 1 folders" in (only(cp, input=f"{folder}/day=*").error or "")
    assert "braces" in (only(cp, input=f"{folder}/{{a,b}}").error or "")


def test_an_input_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    cp = file_stream(tmp_path / "cp", {f"file://{tmp_path}/in/a": 0}, 0)
    source = only(cp, input=str(tmp_path / "never"))
    assert source.error is not None
    assert "never: no such file or folder. Check the path" in source.error
    assert run(["lag", str(cp), "--input", "ftp://elsewhere.invalid/x"]) == 3


# Others


@pytest.mark.parametrize(
    "note",
    [
        b"[" * 100_000,
        b'{"sources": 5}',
        b'{"sources": [5]}',
        b'{"sources": [{"options": 5}]}',
        b'{"sources": [{"options": {"path": 5, "kafka.bootstrap.servers": ["x"]}}]}',
        b'{"sources": [{"options": {"path": "\\u0000", "maxFileAge": "9e99"}}]}',
        b'{"sources": [{"options": {"path": "ftp://elsewhere.invalid/x"}}]}',
    ],
)
def test_notes_that_a_stranger_wrote(tmp_path: Path, note: bytes) -> None:
    for name, tree in (("kafka", samples.sales()), ("files", samples.file_stream())):
        cp = samples.write(tmp_path / name, {**tree, "_floodmark/starts/0.json": note})
        assert run(["lag", str(cp), "--json"]) == 3
    assert run(["lag", str(delta_stream(tmp_path / "delta", 0))]) == 3


def test_a_source_that_cannot_be_asked_says_so(tmp_path: Path) -> None:
    tree = samples.logs(range(2), range(2), offset=lambda batch: str(batch))
    source = only(samples.write(tmp_path / "cp", tree))
    assert source.behind.records is None
    assert "cannot ask" in source.notes[0]


def test_checkpoints_that_tell_nothing(tmp_path: Path) -> None:
    empty = samples.write(tmp_path / "new", {"metadata": b'{"id":"x"}'})
    assert run(["lag", str(empty)]) == 1
    assert run(["lag", str(tmp_path / "absent")]) == 3
    broken = samples.write(tmp_path / "broken", samples.logs(range(2), range(2)))
    (broken / "offsets" / "1").write_bytes(b"v1\n{torn")
    assert run(["lag", str(broken), "--json"]) == 3
    dstreams = samples.write(tmp_path / "dstreams", {"checkpoint-1000": b"x"})
    assert run(["lag", str(dstreams)]) == 3


def test_nothing_is_committed_yet(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", samples.sales(1))
    found = floodmark.lag(str(place))
    assert (found.batch, found.in_flight_batch) == (None, 0)
    assert found.sources[0].kind == "kafka"
