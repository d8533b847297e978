"""The reader against the engine: checkpoints that real Sparks made, and what they said of them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from floodmark.checkpoint.commits import parse_commit, render_commit
from floodmark.checkpoint.layout import is_dstreams_checkpoint
from floodmark.checkpoint.metadata import (
    parse_metadata,
    render_metadata,
)
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.offsets import parse_offsets, render_offsets
from floodmark.checkpoint.restart import Action, restart
from floodmark.checkpoint.timeline import Status, timeline
from floodmark.connectors.files.file_log import (
    log_id,
    merge_source_logs,
    names_to_read,
    parse_sink_log,
    parse_source_log,
    render_log,
)
from floodmark.connectors.files.input_files import Taken, input_files
from floodmark.connectors.kafka.offset import parse_kafka_initial, render_kafka_initial
from floodmark.connectors.rate import parse_rate_initial
from floodmark.connectors.source import parse_offset_text, render_json
from floodmark.storage.files import open_files
from floodmark.storage.load import Entries, load

GOLDEN = Path(__file__).parent.parent / "golden"
FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/*/expected.json"))
SPARKS = ("3.5", "4.0", "4.1", "4.2", "4.3")
EVERYWHERE = {
    *("files", "union", "rate", "rate-micro-batch", "async-progress", "continuous", "dstreams"),
    *("sales-hdfs", "sales-hdfs-snapshot", "sales-rocksdb", "sales-changelog"),
    *("windowed", "session-window", "dedup", "dedup-within-watermark", "dedup-then-sales"),
    *("limit", "join", "pandas-state", "in-flight", "in-flight-state", "in-flight-first"),
}
SINCE = {
    "4.0": {"sales-format-2", "transform-with-state"},
    "4.1": {"join-v3"},
    "4.2": {"sales-row-checksum", "offsets-v2", "named-sources", "named-sink"},
    "4.3": {"join-v4"},
}
ONLY = {
    "4.0": {"sales-format-2-alone", "join-v1"},
    "4.1": {"iceberg"},
    "4.2": {"kafka", "delta", "delta-mid-version", "dstreams-scala"},
}
# How each source describes itself in a query's progress.
KINDS = {
    "FileStreamSource": "file",
    "KafkaV2": "kafka",
    "DeltaSource": "delta",
    "RateStreamV2": "rate",
    "RatePerMicroBatchStream": "rate",
    "org.apache.iceberg.spark.source.SparkMicroBatchStream": "iceberg",
}
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

Json = dict[str, Any]


def _name(folder: Path) -> str:
    return f"{folder.parent.name}-{folder.name}"


@cache
def expected_of(folder: Path) -> Json:
    told: Json = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return told


@cache
def checkpoint_of(folder: Path) -> Checkpoint:
    return load(open_files(str(folder / "checkpoint")), Entries.ALL)


def _is_dstreams(folder: Path) -> bool:
    return expected_of(folder).get("kind") == "dstreams"


STRUCTURED = [folder for folder in FOLDERS if not _is_dstreams(folder)]
STATEFUL = [folder for folder in STRUCTURED if (folder / "checkpoint" / "state").is_dir()]

each_structured = pytest.mark.parametrize("folder", STRUCTURED, ids=_name)
each_stateful = pytest.mark.parametrize("folder", STATEFUL, ids=_name)


@pytest.mark.parametrize("spark", SPARKS)
def test_every_scenario_of_every_spark_is_there(spark: str) -> None:
    wanted = EVERYWHERE.union(*(names for since, names in SINCE.items() if since <= spark))
    wanted |= ONLY.get(spark, set())
    assert wanted == {folder.name for folder in FOLDERS if folder.parent.name == spark}


@each_structured
def test_the_query_and_its_batches(folder: Path) -> None:
    expected, checkpoint = expected_of(folder), checkpoint_of(folder)
    planned, committed = _batch(expected, "offsets"), _batch(expected, "commit")
    assert checkpoint.kind is Kind.STRUCTURED_STREAMING
    assert checkpoint.unreadable == ()
    assert checkpoint.query_id == expected["query_id"]
    assert checkpoint.latest_batch == planned
    assert checkpoint.committed_batch == committed
    assert checkpoint.in_flight_batch == (None if planned == committed else planned)
    assert checkpoint.batch_time_ms == expected["logs"]["offsets"]["time_ms"]


def _batch(expected: Json, log: str) -> int | None:
    entry = expected["logs"][log]
    return None if entry is None else entry["batch"]


@pytest.mark.parametrize(
    "folder", [f for f in STRUCTURED if expected_of(f)["killed_batch"] is not None], ids=_name
)
def test_the_batch_that_was_killed_is_in_flight(folder: Path) -> None:
    checkpoint = checkpoint_of(folder)
    killed = expected_of(folder)["killed_batch"]
    assert checkpoint.in_flight_batch == killed
    assert timeline(checkpoint)[-1].status is Status.IN_FLIGHT
    assert restart(checkpoint).action is Action.RERUN
    # What the engine then ran again is what the log had planned.
    assert _offsets(checkpoint, killed) == _told(expected_of(folder)["restart"], "end_offset")


@each_structured
def test_the_newest_entries_as_sparks_own_log_readers_see_them(folder: Path) -> None:
    logs, checkpoint = expected_of(folder)["logs"], checkpoint_of(folder)
    assert checkpoint.offset_log_version == logs["offsets"]["version"]
    assert {source.id: source.text for source in checkpoint.sources} == logs["offsets"]["offsets"]
    if logs["commit"] is None:
        assert checkpoint.latest_commit is None
    else:
        assert checkpoint.latest_commit is not None
        assert checkpoint.commit_log_version == logs["commit"]["version"]
        watermark = logs["commit"]["next_batch_watermark_ms"]
        assert checkpoint.latest_commit.next_batch_watermark_ms == watermark


@each_structured
def test_every_logged_batch_ends_where_the_engine_said(folder: Path) -> None:
    expected, checkpoint = expected_of(folder), checkpoint_of(folder)
    logged = [told for told in expected["batches"] if told["batch"] in checkpoint.offsets]
    # Continuous mode reports no progress; a query killed in batch 0 had none to report.
    if folder.name not in ("continuous", "in-flight-first"):
        assert logged
    for told in logged:
        batch = told["batch"]
        ids = expected["source_ids"] or [str(number) for number in range(len(told["sources"]))]
        ends = dict(zip(ids, _told(told, "end_offset"), strict=True))
        found = {source.id: source.offset for source in checkpoint.sources_of(batch)}
        if checkpoint.offset_log_version == 2:
            # v2 leaves out the sources that have no offset yet.
            ends = {source: end for source, end in ends.items() if end is not None}
        assert found == ends


@each_structured
def test_the_kind_of_every_source(folder: Path) -> None:
    expected, checkpoint = expected_of(folder), checkpoint_of(folder)
    if folder.name == "continuous":  # reports no progress
        assert [source.kind for source in checkpoint.sources] == ["rate"]
        return
    told = (expected["batches"] or [expected["restart"]])[-1]["sources"]
    found = {source.id: source.kind for source in checkpoint.sources}
    ids = expected["source_ids"] or [str(number) for number in range(len(told))]
    kinds = [KINDS[re.split(r"[\[@]", source["description"])[0]] for source in told]
    assert found == dict(zip(ids, kinds, strict=True))


def _told(batch: Json, which: str) -> list[Any]:
    return [source[which] for source in batch["sources"]]


def _offsets(checkpoint: Checkpoint, batch: int) -> list[Any]:
    return [source.offset for source in checkpoint.sources_of(batch)]


@each_structured
def test_the_watermark_of_every_batch(folder: Path) -> None:
    expected, checkpoint = expected_of(folder), checkpoint_of(folder)
    found = {batch.batch: batch.watermark_ms for batch in timeline(checkpoint)}
    for told in expected["batches"]:
        if told["batch"] in checkpoint.offsets:
            # A query without a watermark reports none and logs 0.
            assert found[told["batch"]] == (told["watermark_ms"] or 0)
    if expected["restart"] is not None:
        assert checkpoint.watermark_ms == (expected["restart"]["watermark_ms"] or 0)


def test_some_watermarks_moved() -> None:
    moved = [folder for folder in STRUCTURED if (checkpoint_of(folder).watermark_ms or 0) > 0]
    assert {folder.name for folder in moved} >= {"windowed", "join", "session-window"}


@pytest.mark.parametrize(
    "folder", [f for f in STRUCTURED if expected_of(f)["restart"] is not None], ids=_name
)
def test_the_engine_restarts_as_the_timeline_says(folder: Path) -> None:
    told, checkpoint = expected_of(folder)["restart"], checkpoint_of(folder)
    next_step = restart(checkpoint)
    assert next_step.action in (Action.CONTINUE, Action.RERUN)
    assert next_step.batch == told["batch"]
    if told["batch"] > 0:
        ids = expected_of(folder)["source_ids"]
        before = checkpoint.sources_of(told["batch"] - 1)
        by_id = {source.id: source.offset for source in before}
        starts = [by_id[name] for name in ids] if ids else [source.offset for source in before]
        assert starts == _told(told, "start_offset")


@each_stateful
def test_the_state(folder: Path) -> None:
    expected, checkpoint = expected_of(folder), checkpoint_of(folder)
    operators = checkpoint.state_operators
    told = (expected["batches"] or [expected["restart"]])[-1]["state"]
    provider = "rocksdb" if "RocksDB" in expected["conf"].get(PROVIDER, "") else "hdfs"
    assert [state.operator for state in operators] == list(range(len(told)))
    assert {state.provider for state in operators} == {provider}
    for state, said in zip(operators, told, strict=True):
        assert len(state.stores) * state.partitions == said["store_instances"]
        # A limit has one partition whatever 4.x says in its progress and its metadata.
        assert state.partitions == (1 if said["name"] == "globalLimit" else said["partitions"])
        # Operator metadata came with 4.0; before it nothing on disk says the name.
        assert state.name == (None if expected["spark"] < "4.0" else said["name"])


@each_stateful
def test_the_operators_as_sparks_own_metadata_reader_sees_them(folder: Path) -> None:
    expected, checkpoint = expected_of(folder), checkpoint_of(folder)
    if expected["spark"] < "4.0":
        assert checkpoint.operators == {}
        return
    found = [
        (operator, described.operator_name, store.store_name, store.num_partitions)
        for operator, described in checkpoint.operators.items()
        for store in described.stores
    ]
    told = [
        (row["operatorId"], row["operatorName"], row["stateStoreName"], row["numPartitions"])
        for row in expected["state_metadata"]
    ]
    assert sorted(found) == sorted(told)
    for row in expected["state_metadata"]:
        properties = checkpoint.operators[row["operatorId"]].properties_json
        assert properties == (row["operatorProperties"] or "")


@each_structured
def test_every_file_comes_back_byte_for_byte(folder: Path) -> None:
    root = folder / "checkpoint"
    rendered = 0
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and not path.name.startswith("."):
            again = _rendered(checkpoint_of(folder), parts, path.read_bytes())
            if again is not None:
                assert again == path.read_bytes(), path
                rendered += 1
    assert rendered >= len(checkpoint_of(folder).offset_ids) + 1


def _rendered(checkpoint: Checkpoint, parts: tuple[str, ...], data: bytes) -> bytes | None:
    """Parsed and rendered again; None for what is no log of the checkpoint."""
    if parts == ("metadata",):
        return render_metadata(parse_metadata(data))
    if parts[0] == "offsets":
        return render_offsets(parse_offsets(data))
    if parts[0] == "commits":
        return render_commit(parse_commit(data))
    if parts[0] == "sources":
        return _rendered_source(checkpoint, parts[1], data)
    return None


def _rendered_source(checkpoint: Checkpoint, source: str, data: bytes) -> bytes:
    kind = next(found.kind for found in checkpoint.sources if found.id == source)
    if kind == "kafka":
        return render_kafka_initial(parse_kafka_initial(data))
    if kind == "rate":
        return f"v1\n{parse_rate_initial(data)}".encode()
    if kind == "iceberg":
        return render_json(parse_offset_text(data.decode())).encode()
    assert kind == "file"
    return render_log(parse_source_log(data))


@pytest.mark.parametrize("spark", SPARKS)
def test_compacted_file_source_log(spark: str) -> None:
    folder = GOLDEN / spark / "files"
    log = folder / "checkpoint" / "sources" / "0"
    entries = {path.name: parse_source_log(path.read_bytes()) for path in log.iterdir()}
    assert names_to_read(entries) == ["9.compact", "10", "11"]
    checkpoint = checkpoint_of(folder)
    taken = input_files(checkpoint, {"0": merge_source_logs(entries)})
    # One file a batch, in the order they were made.
    root = "file:///tmp/floodmark-golden/files/in"
    assert [(file.taken, file.batch, file.path) for file in taken] == [
        (Taken.BY_BATCH, number, f"{root}/{number:02}.json") for number in range(12)
    ]


@pytest.mark.parametrize("spark", SPARKS)
def test_compacted_file_sink_log(spark: str) -> None:
    log = GOLDEN / spark / "files" / "sink" / "_spark_metadata"
    written = {path.name: path.read_bytes() for path in log.iterdir()}
    names = names_to_read(written)
    assert names == ["9.compact", "10", "11"]
    files = [file for name in names for file in parse_sink_log(written[name])]
    assert len({file.path for file in files}) == 12
    assert {file.action for file in files} == {"add"}
    for name, data in written.items():
        assert log_id(name) is not None
        assert render_log(parse_sink_log(data)) == data


@pytest.mark.parametrize("spark", SPARKS)
def test_hadoops_side_files_are_not_taken_for_batches(spark: str) -> None:
    folder = GOLDEN / spark / "sales-hdfs"
    assert (folder / "checkpoint" / "offsets" / ".0.crc").exists()
    checkpoint = checkpoint_of(folder)
    assert checkpoint.offset_ids == (0, 1, 2)
    assert checkpoint.commit_ids == (0, 1, 2)


@pytest.mark.parametrize("folder", [f for f in FOLDERS if _is_dstreams(f)], ids=_name)
def test_dstreams_are_told_apart(folder: Path) -> None:
    expected, checkpoint = expected_of(folder), checkpoint_of(folder)
    assert checkpoint.kind is Kind.DSTREAMS
    names = {file.path for file in checkpoint.files if is_dstreams_checkpoint(file.path)}
    assert names == set(expected["checkpoint_files"])
    assert checkpoint.query_id is None
    assert checkpoint.latest_batch is None


@each_structured
def test_only_neutral_paths_are_inside(folder: Path) -> None:
    logged = [folder / "checkpoint" / "sources", folder / "sink"]
    texts = [
        path.read_text(encoding="utf-8")
        for log in logged
        for path in log.rglob("[!.]*")
        if path.is_file()
    ]
    paths = [line.split('"')[3] for text in texts for line in text.splitlines() if '"path"' in line]
    if any(source.kind == "file" for source in checkpoint_of(folder).sources):
        assert paths
    assert all(path.startswith("file:///tmp/floodmark-golden/") for path in paths)
