"""Crash anywhere, lose nothing: drivers killed with SIGKILL at each point of the protocol.

Four short campaigns run with every `make test`; the whole matrix is `make soak`, with three
scenarios more whose checkpoint Spark writes to S3. The environment varies and narrows that:
FLOODMARK_CHAOS_SEED, FLOODMARK_CHAOS_ONLY (part of a scenario's name), FLOODMARK_CHAOS_KILLS (so
many a scenario, drawn from all points) and FLOODMARK_CHAOS_MINUTES (no scenario begins later than
that).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from chaos.campaign import Campaign, Tally, run_campaign
from chaos.scenario import Scenario, matrix
from floodmark.drills.points import Point

if TYPE_CHECKING:
    from services.s3 import S3Server

SEED = os.environ.get("FLOODMARK_CHAOS_SEED", "2026")
RANDOM_KILLS = 2
ONLY = os.environ.get("FLOODMARK_CHAOS_ONLY", "")
KILLS = int(os.environ.get("FLOODMARK_CHAOS_KILLS", "99"))
MINUTES = float(os.environ.get("FLOODMARK_CHAOS_MINUTES", "inf"))

SHORT = {
    Scenario("files", "totals", "hdfs", "delta"): (Point.DURING_STATE, Point.AFTER_SINK),
    Scenario("kafka", "all", "none", "postgres"): (Point.AFTER_OFFSET, Point.DURING_SINK),
    Scenario("files", "distinct", "rocksdb", "postgres"): (Point.AFTER_SINK, Point.AFTER_COMMIT),
    Scenario("delta", "totals", "hdfs", "delta-batch"): (Point.AFTER_SINK,),
}
ON_S3 = [
    Scenario("files", "totals", "hdfs", "postgres"),
    Scenario("files", "distinct", "rocksdb", "delta-batch"),
    Scenario("delta", "all", "none", "delta"),
]


@pytest.fixture
def campaign(request: pytest.FixtureRequest, fetched: ModuleType, tmp_path: Path) -> Campaign:
    scenario: Scenario = request.param
    fetched.spark_connectors()  # so that no driver waits for a download
    kafka = request.getfixturevalue("kafka") if scenario.source == "kafka" else None
    postgres = request.getfixturevalue("postgres") if scenario.sink == "postgres" else None
    return Campaign(scenario, tmp_path / "campaign", SEED, kafka, postgres)


@pytest.fixture
def on_s3(request: pytest.FixtureRequest, s3: S3Server, tmp_path: Path) -> Campaign:
    scenario: Scenario = request.param
    postgres = request.getfixturevalue("postgres") if scenario.sink == "postgres" else None
    folder = tmp_path / "campaign"
    return Campaign(scenario, folder, SEED, None, postgres, s3, s3.spark_conf)


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("campaign", "wanted"), SHORT.items(), indirect=["campaign"], ids=[str(one) for one in SHORT]
)
def test_a_killed_driver_loses_and_repeats_nothing(
    campaign: Campaign, wanted: tuple[Point, ...]
) -> None:
    tally = run_campaign(campaign, wanted)

    print(f"\nseed {SEED}: {tally.words()}")
    assert not tally.missed, tally.words()
    assert tally.kills >= len(wanted)


@pytest.mark.spark
@pytest.mark.parametrize(
    "campaign", [Scenario("files", "distinct", "rocksdb", "delta-batch")], indirect=True, ids=str
)
def test_a_first_offset_cut_short_does_not_block_the_restart(campaign: Campaign) -> None:
    campaign.leave_first_offset_half_written()

    campaign.finish()


def soaked() -> list[Scenario]:
    """In the seed's order: a campaign that is cut short meets a bit of everything."""
    scenarios = [one for one in matrix() if ONLY in one.name]
    random.Random(SEED).shuffle(scenarios)
    return scenarios


def chosen(scenario: Scenario) -> list[Point | None]:
    wanted: list[Point | None] = [*scenario.points, *[None] * RANDOM_KILLS]
    random.Random(f"{SEED} {scenario.name}").shuffle(wanted)
    return wanted[:KILLS]


@dataclass
class Soak:
    tally: Tally = field(default_factory=Tally)
    survived: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self.began) / 60


@pytest.fixture(scope="module")
def soak() -> Iterator[Soak]:
    soak = Soak()
    yield soak
    print(
        f"\nseed {SEED}, {soak.minutes:.0f} minutes, {soak.survived} scenarios survived: "
        f"{soak.tally.words()}"
    )


# No other mark: `pytest -m spark` must not begin a campaign of an hour.
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("campaign", soaked(), indirect=True, ids=str)
def test_the_whole_matrix(campaign: Campaign, soak: Soak) -> None:
    if soak.minutes > MINUTES:
        pytest.skip(f"FLOODMARK_CHAOS_MINUTES={MINUTES:g} have passed")
    wanted = chosen(campaign.scenario)

    tally = run_campaign(campaign, wanted)

    soak.tally.add(tally)
    soak.survived += 1
    print(f"\nseed {SEED}, {campaign.scenario}: {tally.words()}", flush=True)
    assert tally.kills, "no driver was killed, so nothing was shown"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("on_s3", ON_S3, indirect=True, ids=str)
def test_kills_with_the_checkpoint_on_s3(on_s3: Campaign) -> None:
    wanted = chosen(on_s3.scenario)

    tally = run_campaign(on_s3, wanted)

    print(f"\nseed {SEED}, {on_s3.scenario} on S3: {tally.words()}", flush=True)
    assert tally.kills >= min(len(wanted), KILLS)
