"""The judge and the oracle of the campaign, tried on folders that are made by hand."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from chaos.campaign import Campaign
from chaos.inputs import DeltaInput, Event
from chaos.scenario import Scenario, matrix
from chaos.sinks import DeltaSink
from floodmark.drills.points import Point
from floodmark.engine.drill.killing.aftermath import judge

QUERY = "5a0c362f-824f-43a3-940d-3be0f4a399fd"
PARTITIONS = 3
LONG_AGO = 0.0


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Batch 0 is committed, batch 1 is planned."""
    folder = tmp_path / "checkpoint"
    for path in ("offsets/0", "commits/0", "offsets/1"):
        _touch(folder / path)
    for partition in range(PARTITIONS):
        _touch(folder / "state" / "0" / str(partition) / "1.delta")
    (folder / "metadata").write_text(json.dumps({"id": QUERY}))
    return folder


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    (tmp_path / "sink" / "_delta_log").mkdir(parents=True)
    return DeltaSink(tmp_path / "sink")


def _touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def _state(checkpoint: Path, *partitions: int, name: str = "2.delta") -> None:
    for partition in partitions:
        _touch(checkpoint / "state" / "0" / str(partition) / name)


def _record(sink: DeltaSink, batch: int) -> None:
    action = {"txn": {"appId": QUERY, "version": batch}}
    (sink.table / "_delta_log" / f"{batch:020d}.json").write_text(json.dumps(action))


def test_nothing_planned_is_starting(tmp_path: Path, sink: DeltaSink) -> None:
    assert judge(tmp_path / "none", sink, PARTITIONS, LONG_AGO).point is Point.STARTING


def test_planned_and_nothing_more_is_after_the_offset(checkpoint: Path, sink: DeltaSink) -> None:
    _record(sink, 0)

    found = judge(checkpoint, sink, PARTITIONS, LONG_AGO)

    assert found.point is Point.AFTER_OFFSET
    assert (found.planned, found.committed, found.in_flight) == (1, 0, 1)


@pytest.mark.parametrize("name", ["2.delta", "2.zip", "2.changelog", ".2.delta.u.TID7.tmp"])
def test_some_partitions_of_the_new_version_are_during_the_state(
    checkpoint: Path, sink: DeltaSink, name: str
) -> None:
    _state(checkpoint, 0, 2, name=name)
    _touch(sink.table / "part-0.parquet")

    found = judge(checkpoint, sink, PARTITIONS, LONG_AGO)

    assert found.point is Point.DURING_STATE
    # The rows were being written as well: whoever waited for that has hit it.
    assert found.hit(Point.DURING_SINK)
    assert not found.hit(Point.AFTER_SINK)


def test_half_a_state_alone_is_not_during_the_sink(checkpoint: Path, sink: DeltaSink) -> None:
    _state(checkpoint, 0)

    assert not judge(checkpoint, sink, PARTITIONS, LONG_AGO).hit(Point.DURING_SINK)


def test_state_of_an_earlier_kill_does_not_count(checkpoint: Path, sink: DeltaSink) -> None:
    _state(checkpoint, 0)

    assert judge(checkpoint, sink, PARTITIONS, time.time() + 60).point is Point.AFTER_OFFSET


def test_data_that_no_commit_adds_is_during_the_sink(checkpoint: Path, sink: DeltaSink) -> None:
    _state(checkpoint, 0, 1, 2)
    _touch(sink.table / "part-0.parquet")

    assert judge(checkpoint, sink, PARTITIONS, LONG_AGO).point is Point.DURING_SINK


def test_the_batch_in_the_sink_is_after_the_sink(checkpoint: Path, sink: DeltaSink) -> None:
    _record(sink, 1)

    assert judge(checkpoint, sink, PARTITIONS, LONG_AGO).point is Point.AFTER_SINK


def test_planned_and_committed_is_after_the_commit(checkpoint: Path, sink: DeltaSink) -> None:
    _touch(checkpoint / "commits" / "1")

    found = judge(checkpoint, sink, PARTITIONS, LONG_AGO)

    assert found.point is Point.AFTER_COMMIT
    assert found.in_flight is None


def _fed(tmp_path: Path, shape: str, state: str) -> tuple[Campaign, list[Event]]:
    campaign = Campaign(Scenario("files", shape, state, "delta"), tmp_path / "base", "7")
    campaign.feed(2)
    return campaign, campaign.events.made


def test_the_oracle_accepts_what_was_fed(tmp_path: Path) -> None:
    campaign, events = _fed(tmp_path, "all", "none")
    DeltaInput(tmp_path / "base" / "sink").feed(events)

    campaign.require_equal()


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        (lambda events: events[1:], "lost"),
        (lambda events: [*events, events[0]], "twice"),
        (lambda events: [*events, Event(-1, "k0", 1)], "never fed"),
    ],
    ids=["one lost", "one twice", "one too many"],
)
def test_the_oracle_refuses_a_sink_that_differs(tmp_path: Path, spoilt: object, words: str) -> None:
    campaign, events = _fed(tmp_path, "all", "none")
    assert callable(spoilt)
    DeltaInput(tmp_path / "base" / "sink").feed(spoilt(events))

    with pytest.raises(AssertionError, match=words):
        campaign.require_equal()


def test_the_oracle_wants_each_event_once_of_a_deduplication(tmp_path: Path) -> None:
    campaign, events = _fed(tmp_path, "distinct", "hdfs")
    assert len({event.id for event in events}) < len(events)
    DeltaInput(tmp_path / "base" / "sink").feed(events)

    with pytest.raises(AssertionError, match="twice"):
        campaign.require_equal()


def test_the_matrix_has_every_source_sink_and_provider() -> None:
    scenarios = matrix()

    assert len(set(scenarios)) == 27
    assert {(one.source, one.sink, one.state.partition("-")[0]) for one in scenarios} == {
        (source, sink, state)
        for source in ("files", "kafka", "delta")
        for sink in ("delta", "delta-batch", "postgres")
        for state in ("none", "hdfs", "rocksdb")
    }
    assert {one.shape for one in scenarios if one.stateful} == {"totals", "distinct"}
