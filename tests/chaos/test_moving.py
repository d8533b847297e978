"""Run, stop, move, go on: for every source, provider, stop and verb the sink equals the oracle.

A short selection runs with every `make test`; all 72 moves are `make soak`.
FLOODMARK_MOVING_SEED varies the input, FLOODMARK_MOVING_ONLY (part of a name) narrows it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from chaos.moving import CLEAN, KILLED, VERBS, Moving, Stop, stops
from chaos.scenario import Scenario
from floodmark.drills.points import Point

SEED = os.environ.get("FLOODMARK_MOVING_SEED", "2026")
ONLY = os.environ.get("FLOODMARK_MOVING_ONLY", "")
SHORT = {
    Stop(Scenario("files", "totals", "rocksdb", "delta"), KILLED, Point.DURING_STATE): "upgrade",
    Stop(Scenario("kafka", "distinct", "hdfs", "delta-batch"), KILLED, Point.AFTER_SINK): "rewind",
    Stop(Scenario("delta", "all", "none", "delta"), CLEAN): "backup-restore",
}


@pytest.fixture
def moving(request: pytest.FixtureRequest, fetched: ModuleType, tmp_path: Path) -> Moving:
    stop: Stop = request.param
    fetched.spark_connectors()  # so that no driver waits for a download
    kafka = request.getfixturevalue("kafka") if stop.scenario.source == "kafka" else None
    return Moving(stop, tmp_path / "stream", SEED, kafka)


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("moving", "verb"), SHORT.items(), indirect=["moving"], ids=[str(one) for one in SHORT]
)
def test_a_moved_stream_loses_and_repeats_nothing(moving: Moving, verb: str) -> None:
    moving.run_and_stop()
    moving.moved_by(verb)


@pytest.fixture(scope="module")
def done() -> Iterator[Counter[str]]:
    done: Counter[str] = Counter()
    yield done
    words = ", ".join(f"{name} {number}" for name, number in sorted(done.items()))
    print(f"\nseed {SEED}: {words}")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "moving", [one for one in stops() if ONLY in str(one)], indirect=True, ids=str
)
def test_every_move(moving: Moving, done: Counter[str]) -> None:
    moving.run_and_stop()
    done[f"stopped {moving.hit or CLEAN}"] += 1
    for verb in VERBS:
        moving.moved_by(verb)
        done[f"moved by {verb}"] += 1
        print(f"\n{moving.stop} ({moving.hit or CLEAN}), {verb}: equal", end="", flush=True)
