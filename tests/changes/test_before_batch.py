"""A time that the log holds no more: Kafka's index and Delta's history are asked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.checkpoint.live_answers import Bounds
from floodmark.engine.pipelines.start_positions import read_start
from floodmark.errors import BatchPurged, NoAnswer, WouldLose, WrongUse

THEN = "2026-11-14T12:00:00Z"
THEN_MS = 1_794_657_600_000


class FakeCluster:
    """Two partitions: one whose record of that time is at 100, one that keeps from 450 on."""

    asked: list[str]

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.asked.append(bootstrap)

    def at_time(self, topic: str, time_ms: int) -> dict[int, int]:
        assert time_ms == THEN_MS
        return {0: 100, 1: 450}

    def bounds(self, topic: str) -> dict[int, Bounds]:
        return {0: Bounds(0, 900), 1: Bounds(450, 900)}

    def close(self) -> None:
        pass


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeCluster]]:
    FakeCluster.asked = []
    monkeypatch.setattr("floodmark.connectors.kafka.live.Cluster", FakeCluster)
    monkeypatch.setattr("floodmark.changes.sources.kafka_cluster.Cluster", FakeCluster)
    return FakeCluster


def offsets_of(path: Path) -> object:
    return api.offsets(str(path)).sources[0].offset


def test_kafka_is_asked_for_a_time_before_the_log(
    tmp_path: Path, cluster: type[FakeCluster]
) -> None:
    samples.write(tmp_path, samples.logs(range(3, 8), range(3, 8)))
    change = api.rewind(str(tmp_path), to_time=THEN, kafka="broker:9092", carrying=GO)
    assert offsets_of(tmp_path) == {"orders": {"0": 100, "1": 450}}
    notes = " ".join(change.plan.notes)
    assert "stood there at 2026-11-14 12:00:00 UTC" in notes
    assert "partition 1 has nothing before offset 450" in notes
    assert change.plan.options["to_time"] == "2026-11-14 12:00:00 UTC"
    again = api.rewind(str(tmp_path), to_time=THEN, kafka="broker:9092", carrying=GO)
    assert "already" in again.words


def test_a_cluster_that_only_a_note_names_is_proposed_and_not_asked(
    tmp_path: Path, cluster: type[FakeCluster]
) -> None:
    note = {"sources": [{"kind": "kafka", "options": {"kafka.bootstrap.servers": "noted:9092"}}]}
    tree = samples.logs(range(3, 8), range(3, 8))
    tree["_floodmark/starts/1.json"] = json.dumps(note).encode()
    samples.write(tmp_path, tree)
    with pytest.raises(BatchPurged) as refused:
        api.rewind(str(tmp_path), to_time=THEN)
    assert "--kafka noted:9092" in refused.value.do
    assert cluster.asked == []


def test_the_log_is_enough_where_it_reaches(tmp_path: Path) -> None:
    samples.write(tmp_path, samples.logs(range(3, 8), range(3, 8)))
    change = api.rewind(str(tmp_path), to_time="2026-11-14T23:47:30Z")
    assert "Back to the end of batch 4" in change.plan.title
    (note, *_) = change.plan.notes
    assert "Batch 4 is the last that was planned by 2026-11-14 23:47:30 UTC" in note


def test_state_of_that_time_is_gone(tmp_path: Path) -> None:
    tree = samples.sales()
    for batch in range(3):
        del tree[f"offsets/{batch}"], tree[f"commits/{batch}"]
    samples.write(tmp_path, tree)
    with pytest.raises(WouldLose, match="this stream has state"):
        api.rewind(str(tmp_path), to_time=THEN, kafka="broker:9092")


def test_a_source_that_has_no_index_by_time(tmp_path: Path) -> None:
    tree = samples.file_stream()
    del tree["offsets/0"], tree["commits/0"]
    samples.write(tmp_path, tree)
    with pytest.raises(NoAnswer, match=r"source 0 \(file\) cannot be asked"):
        api.rewind(str(tmp_path), to_time=THEN)


def delta_stream(folder: Path, versions: dict[int, int], in_commit: bool = False) -> Path:
    """A stream that stands before version 7 of a table with versions of these times."""
    samples.write(
        folder / "cp", samples.logs(range(3, 8), range(3, 8), lambda batch: samples.DELTA_OFFSET)
    )
    for version, at_ms in versions.items():
        info = {"commitInfo": {"inCommitTimestamp": at_ms} if in_commit else {}}
        path = folder / f"table/_delta_log/{version:020d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(info) + "\n")
        if not in_commit:
            os.utime(path, (at_ms / 1000, at_ms / 1000))
    return folder / "cp"


@pytest.mark.parametrize("in_commit", [False, True], ids=["by-file-time", "in-commit"])
def test_deltas_history_is_asked(tmp_path: Path, in_commit: bool) -> None:
    hour = 3_600_000
    times = {version: THEN_MS + (version - 4) * hour for version in range(7)}
    cp = delta_stream(tmp_path, times, in_commit)
    change = api.rewind(str(cp), to_time=THEN, table=str(tmp_path / "table"), carrying=GO)
    assert offsets_of(cp) == {
        "sourceVersion": 1,
        "reservoirId": "a1b2",
        "reservoirVersion": 4,
        "index": -1,
        "isStartingVersion": False,
    }
    assert any("from version 4, the first" in note for note in change.plan.notes)


def test_versions_that_are_cleaned_up_are_accepted_by_name(tmp_path: Path) -> None:
    cp = delta_stream(tmp_path, {5: THEN_MS + 1000, 6: THEN_MS + 2000})
    with pytest.raises(WouldLose, match="out of reach") as refused:
        api.rewind(str(cp), to_time=THEN, table=str(tmp_path / "table"))
    assert "versions before 5" in refused.value.why
    change = api.rewind(
        str(cp), to_time=THEN, table=str(tmp_path / "table"), accept=["out-of-reach"]
    )
    assert any(note.startswith("OUT OF REACH") for note in change.plan.notes)


def test_a_table_that_is_none(tmp_path: Path) -> None:
    cp = delta_stream(tmp_path, {})
    (tmp_path / "table").mkdir()
    samples.write(
        tmp_path / "other",
        {f"_delta_log/{0:020d}.json": b'{"metaData":{"id":"ffff"}}\n'},
    )
    with pytest.raises(WrongUse, match="is not the table that the stream reads"):
        api.rewind(str(cp), to_time=THEN, table=str(tmp_path / "other"))
    with pytest.raises(NoAnswer, match="is not a Delta table"):
        api.rewind(str(cp), to_time=THEN, table=str(tmp_path / "table"))
    with pytest.raises(BatchPurged, match="the Delta table was not asked"):
        api.rewind(str(cp), to_time=THEN)


def test_what_a_batch_needs_is_asked_before_a_rewind(
    tmp_path: Path, cluster: type[FakeCluster]
) -> None:
    offset = lambda batch: f'{{"orders":{{"0":{batch},"1":{440 + batch}}}}}'  # noqa: E731
    samples.write(tmp_path, samples.logs(range(8), range(8), offset))
    with pytest.raises(WouldLose, match="7 records are out of reach"):
        api.rewind(str(tmp_path), to_batch=3, kafka="broker:9092")
    change = api.rewind(
        str(tmp_path), to_batch=3, kafka="broker:9092", accept=["out-of-reach"], carrying=GO
    )
    assert any("OUT OF REACH: orders partition 1: 7 records" in note for note in change.plan.notes)


def test_an_unknown_name_accepts_nothing(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no such name"):
        api.rewind(str(tmp_path), to_batch=3, accept=["everything"])


def test_a_first_snapshot_has_no_place_of_a_time(tmp_path: Path) -> None:
    """Any version would be ahead of what of the snapshot is not read yet."""
    cp = delta_stream(tmp_path, {0: THEN_MS - 5, 1: THEN_MS + 5, 2: THEN_MS + 9})
    inside = samples.DELTA_OFFSET.replace(":7,", ":0,").replace('"index":-1', '"index":5')
    inside = inside.replace("false", "true")
    tree = samples.logs(range(3, 8), range(3, 8), lambda batch: inside)
    samples.write(cp, tree)
    with pytest.raises(WouldLose, match="still inside the first snapshot"):
        api.rewind(str(cp), to_time=THEN, table=str(tmp_path / "table"))


def test_without_state_a_first_snapshot_cannot_be_gone_on_with(tmp_path: Path) -> None:
    inside = samples.DELTA_OFFSET.replace('"index":-1', '"index":5').replace("false", "true")
    cp = samples.write(tmp_path / "cp", samples.logs(range(2), range(2), lambda batch: inside))
    with pytest.raises(WouldLose, match="first snapshot, which no option resumes"):
        api.upgrade(str(cp), str(tmp_path / "new"), without_state=True)


def test_without_state_a_version_is_begun_anew_and_that_is_said(tmp_path: Path) -> None:
    inside = samples.DELTA_OFFSET.replace('"index":-1', '"index":5')
    cp = samples.write(tmp_path / "cp", samples.logs(range(2), range(2), lambda batch: inside))
    plan = api.upgrade(str(cp), str(tmp_path / "new"), without_state=True, carrying=GO).plan
    assert any("reads files 0 to 5 of it a second time" in note for note in plan.notes)
    start = read_start(tmp_path / "new/_floodmark/start.json")
    assert start.delta() == {"startingVersion": "7"}
