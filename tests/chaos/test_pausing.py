"""Drivers that were paused and come back write nothing, and stop by themselves.

`make test` pauses a few; `make soak` fifty and more, and some whose executors are on a standalone
cluster. FLOODMARK_PAUSES is how many a sink; with FLOODMARK_PAUSES_ON=s3 the checkpoint lies on S3.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from chaos.pausing import Pausing
from chaos.scenario import Scenario

if TYPE_CHECKING:
    from services.cluster import SparkCluster
    from services.s3 import S3Server

SEED = os.environ.get("FLOODMARK_CHAOS_SEED", "2026")
PAUSES = int(os.environ.get("FLOODMARK_PAUSES", "14"))
STARTS = 3
PAUSES_ON_CLUSTER = int(os.environ.get("FLOODMARK_PAUSES_ON_CLUSTER", "4"))
ON_S3 = os.environ.get("FLOODMARK_PAUSES_ON") == "s3"
SCENARIOS = [Scenario("files", "all", "none", sink) for sink in ("postgres", "delta-batch")] + [
    Scenario("files", "all", "none", sink) for sink in ("delta", "parquet")
]


@pytest.fixture
def pausing(request: pytest.FixtureRequest, fetched: ModuleType, tmp_path: Path) -> Pausing:
    scenario: Scenario = request.param
    fetched.spark_connectors()  # so that no driver waits for a download
    postgres = request.getfixturevalue("postgres") if scenario.sink == "postgres" else None
    if not ON_S3:
        return Pausing(scenario, tmp_path / "campaign", SEED, None, postgres)
    s3: S3Server = request.getfixturevalue("s3")
    conf = {**s3.spark_conf, "spark.jars": ",".join(map(str, fetched.spark_s3()))}
    return Pausing(scenario, tmp_path / "campaign", SEED, None, postgres, s3, conf)


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pausing", SCENARIOS[:1], indirect=True, ids=str)
def test_a_paused_driver_that_comes_back_writes_nothing(pausing: Pausing) -> None:
    found = pausing.run(1)
    print(f"\nseed {SEED}: {found.words()}")
    assert found.number == 1


# No other mark: `pytest -m spark` must not begin a campaign of an hour.
@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("pausing", SCENARIOS, indirect=True, ids=str)
def test_pauses_at_random_moments(pausing: Pausing) -> None:
    found = pausing.run(PAUSES)
    on = "S3" if ON_S3 else "a disk"
    print(f"\nseed {SEED}, {pausing.scenario}, on {on}: {found.words()}", flush=True)
    assert found.number == PAUSES


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scenario", SCENARIOS[1:3], ids=str)
def test_pauses_on_a_cluster(
    scenario: Scenario, cluster: SparkCluster, fetched: ModuleType, tmp_path: Path
) -> None:
    """The driver is paused, its executors are not; the second has executors of its own."""
    fetched.spark_connectors()
    found = Pausing(scenario, tmp_path / "campaign", SEED, cluster=cluster).run(PAUSES_ON_CLUSTER)
    print(f"\nseed {SEED}, {scenario}, on a cluster: {found.words()}", flush=True)
    assert found.number == PAUSES_ON_CLUSTER


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("pausing", SCENARIOS, indirect=True, ids=str)
def test_two_starts_at_one_instant(pausing: Pausing) -> None:
    starts = Counter(pausing.start_two() for _ in range(STARTS))
    pausing.finish()
    print(
        f"\nseed {SEED}, {pausing.scenario}: {STARTS} times two starts: {dict(starts)}", flush=True
    )
    assert sum(starts.values()) == STARTS
