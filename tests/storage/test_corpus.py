"""Real checkpoints of Spark 2.1 to 4.0, with values read from their files by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from floodmark import api
from floodmark.checkpoint.commits import parse_commit, render_commit
from floodmark.checkpoint.metadata import parse_metadata, render_metadata
from floodmark.checkpoint.offsets import parse_offsets, render_offsets
from floodmark.checkpoint.restart import Action, restart
from floodmark.connectors.files.file_log import (
    compact_interval,
    merge_source_logs,
    missing_ids,
    names_to_read,
    parse_sink_log,
    parse_source_log,
    render_log,
)

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="../shared/corpus is not there: Spark's own samples are not tried"
)
SHUFFLE = "spark.sql.shuffle.partitions"
JOIN_STORES = (
    "left-keyToNumValues",
    "left-keyWithIndexToValue",
    "right-keyToNumValues",
    "right-keyWithIndexToValue",
)
# folder: query id, latest, committed, in flight, time of the latest, its offsets, size of conf,
# state as (provider, partitions, stores, version), what a restart does
EXPECTED: dict[str, tuple[Any, ...]] = {
    "checkpoint-test-offsetId-commitId-inconsistent": (
        "d4358946-170c-49a7-823b-d8e4e9126616",
        *(4, 2, 4, 1_531_292_030_005, [4], 2),
        None,
        Action.FAIL,  # offsets/3 is missing
    ),
    "checkpoint-version-2.1.0": (
        "dddc5e7f-1e71-454c-8362-de184444fb5a",
        *(1, None, 1, 1_489_180_209_261, [2], 0),
        ("hdfs", 10, ("default",), 2),
        Action.RERUN,
    ),
    "checkpoint-version-2.3.1-streaming-aggregate-state-format-1": (
        "2f32aca2-1b97-458f-a48f-109328724f09",
        *(1, 1, None, 1_533_784_349_160, [1], 2),
        ("hdfs", 5, ("default",), 2),
        Action.CONTINUE,
    ),
    "checkpoint-version-2.4.0-streaming-join": (
        "1ab1ee6f-993c-4a51-824c-1c7cc8202f62",
        *(0, 0, None, 1_548_845_804_202, [0, 0], 5),
        ("hdfs", 5, JOIN_STORES, 1),
        Action.CONTINUE,
    ),
    "checkpoint-version-3.2.0-streaming-aggregate-with-repartition": (
        "cd462130-c8fb-4212-8b08-4e1b9e10dbcf",
        *(1, 1, None, 1_645_692_630_152, [1], 8),
        ("hdfs", 5, ("default",), 2),
        Action.CONTINUE,
    ),
    "checkpoint-version-3.3.0-streaming-deduplication": (
        "33e8de33-00b8-4b60-8246-df2f433257ff",
        *(1, 1, None, 1_656_644_492_462, [1], 9),
        ("hdfs", 5, ("default",), 2),
        Action.CONTINUE,
    ),
    "checkpoint-version-4.0.0/hdfs/agg": (
        "ab7bcd9a-4146-45d3-933d-a615b381c3be",
        *(3, 3, None, 1_719_290_664_278, [3], 9),
        ("hdfs", 5, ("default",), 4),
        Action.CONTINUE,
    ),
    "checkpoint-version-4.0.0/rocksdb/agg": (
        "0da797f0-6c12-4954-89cf-cea200a87f97",
        *(3, 3, None, 1_719_290_940_519, [3], 9),
        ("rocksdb", 5, ("default",), 4),
        Action.CONTINUE,
    ),
    "checkpoint-version-4.0.0-tws-unsaferow": (
        "1341f9d1-5100-4426-876c-2754aeaca02b",
        *(1, 1, None, 1_734_074_071_551, [1], 11),
        ("rocksdb", 5, ("default",), 2),
        Action.CONTINUE,
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_where_it_stands(name: str) -> None:
    query_id, latest, committed, in_flight, time_ms, offsets, settings, state, action = EXPECTED[
        name
    ]
    found = api.look(str(CORPUS / name))
    assert found.query_id == query_id
    assert found.latest_batch == latest
    assert found.committed_batch == committed
    assert found.in_flight_batch == in_flight
    assert found.batch_time_ms == time_ms
    assert [source.offset for source in found.sources] == offsets
    assert {source.kind for source in found.sources} == {"memory"}
    assert len(found.conf) == settings
    assert found.conf.get(SHUFFLE) in (None, "5")
    assert found.offset_log_version == 1
    assert found.commit_log_version == (None if committed is None else 1)
    assert found.unreadable == ()
    assert restart(found).action is action
    if state is None:
        assert found.state_operators == ()
    else:
        (operator,) = found.state_operators
        provider, partitions, stores, version = state
        assert (operator.provider, operator.partitions) == (provider, partitions)
        assert (operator.stores, operator.version) == (stores, version)


def test_watermarks() -> None:
    found = api.look(str(CORPUS / "checkpoint-test-offsetId-commitId-inconsistent"))
    assert found.watermark_ms == 5000
    assert {b.batch: b.status.value for b in api.batches(found.path)} == {
        0: "committed",
        1: "committed",
        2: "committed",
        4: "in-flight",
    }


def test_every_checkpoint_is_found_by_its_shape() -> None:
    found = {entry.path.removeprefix(f"{CORPUS}/") for entry in api.scan([str(CORPUS)])}
    assert found == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_log_file_is_rendered_byte_for_byte(name: str) -> None:
    folder = CORPUS / name
    metadata = (folder / "metadata").read_bytes()
    assert render_metadata(parse_metadata(metadata)) == metadata
    for path in folder.glob("offsets/[0-9]*"):
        assert render_offsets(parse_offsets(path.read_bytes())) == path.read_bytes()
    for path in folder.glob("commits/[0-9]*"):
        assert render_commit(parse_commit(path.read_bytes())) == path.read_bytes()


def test_offset_maps() -> None:
    for batch in range(4):
        data = (CORPUS / "offset-map" / str(batch)).read_bytes()
        entry = parse_offsets(data)
        assert (entry.version, entry.offsets) == (2, (("0", str(batch)),))
        assert render_offsets(entry) == data


def test_commits_of_format_2() -> None:
    data = (CORPUS / "testCommitLogV2" / "testCommitLog").read_bytes()
    entry = parse_commit(data)
    assert entry.version == 2
    assert entry.state_unique_ids == {
        0: (("unique_id1", "unique_id2"), ("unique_id3", "unique_id4")),
        1: (("unique_id5", "unique_id6"), ("unique_id7", "unique_id8")),
    }
    assert render_commit(entry) == data


def test_the_file_sources_log() -> None:
    folder = CORPUS / "file-source-log-version-2.1.0"
    names = [path.name for path in folder.iterdir()]
    assert names_to_read(names) == ["2.compact", "3", "4"]
    assert missing_ids(names) == []
    assert compact_interval(names) == 3
    logs = {name: parse_source_log((folder / name).read_bytes()) for name in names}
    files = merge_source_logs(logs)
    assert [(file.path, file.batch_id) for file in files] == [(f"/a/b/{i}", i) for i in range(5)]
    assert files[0].timestamp == 1_480_730_949_000
    for name, log in logs.items():
        data = (folder / name).read_bytes()
        assert render_log(log, ends_with_newline=data.endswith(b"\n")) == data


def test_the_file_sinks_log() -> None:
    folder = CORPUS / "file-sink-log-version-2.1.0"
    names = [path.name for path in folder.iterdir()]
    assert names_to_read(names) == ["7.compact", "8", "9"]
    assert compact_interval(names) == 8
    files = [
        file
        for name in names_to_read(names)
        for file in parse_sink_log((folder / name).read_bytes())
    ]
    assert [file.path for file in files] == [f"/a/b/{i}" for i in range(10)]
    assert [file.size for file in files] == [1, *range(100, 1000, 100)]
    assert {file.action for file in files} == {"add"}
    assert not any(file.is_dir for file in files)
