"""Operators' deeds against a running driver: nothing lost, nothing twice, the right exit status.

A short campaign runs with every `make test`, the longer one is `make soak`.
FLOODMARK_DEEDS_SEED varies their order and moments.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from chaos.deeds import Deed, Deeds, possible
from chaos.scenario import Scenario

SEED = os.environ.get("FLOODMARK_DEEDS_SEED", "2026")
SHORT = [Deed.JVM_KILLED, Deed.BROKER_AWAY, Deed.DATABASE_AWAY, Deed.GROUP_TERMINATED]
LONG = [
    Scenario("kafka", "all", "none", "postgres"),
    Scenario("kafka", "totals", "hdfs", "delta"),
    Scenario("files", "distinct", "rocksdb", "delta-batch"),
    Scenario("files", "totals", "hdfs", "postgres"),
    Scenario("delta", "all", "none", "delta-batch"),
]


def can_mount(place: Path) -> bool:
    place.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
    except OSError:
        return False
    subprocess.run(["umount", str(place)], check=True)
    return True


@pytest.fixture
def deeds(request: pytest.FixtureRequest, fetched: ModuleType, tmp_path: Path) -> Iterator[Deeds]:
    from services.kafka import KafkaServer
    from services.postgres import PostgresServer

    scenario: Scenario = request.param
    fetched.spark_connectors()  # so that no driver waits for a download
    # Servers of its own: others' tests must not meet an outage.
    kafka = KafkaServer(fetched.kafka_broker()) if scenario.source == "kafka" else None
    postgres = PostgresServer(fetched.postgres_programs()) if scenario.sink == "postgres" else None
    servers = [one for one in (kafka, postgres) if one is not None]
    try:
        for server in servers:
            server.__enter__()
        yield Deeds(scenario, tmp_path / "campaign", SEED, kafka, postgres)
    finally:
        for server in servers:
            server.__exit__(None, None, None)


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("deeds", [LONG[0]], indirect=True, ids=str)
def test_a_few_deeds_lose_and_repeat_nothing(deeds: Deeds) -> None:
    deeds.run(SHORT)
    assert deeds.done == SHORT
    assert deeds.restarts >= 2, "the JVM's death and an outage are failures that it gets over"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("deeds", LONG, indirect=True, ids=str)
def test_all_deeds_lose_and_repeat_nothing(deeds: Deeds, tmp_path: Path) -> None:
    mounts = can_mount(tmp_path / "try")
    if mounts:
        deeds.mount_checkpoint()
    try:
        chosen = possible(deeds.scenario, mounts) * 2
        random.Random(f"{SEED} {deeds.scenario}").shuffle(chosen)
        deeds.run(chosen)
        print(
            f"\nseed {SEED}, {deeds.scenario}: {len(deeds.done)} deeds, "
            f"{deeds.restarts} restarts, disk mounted: {mounts}"
        )
        assert deeds.done == chosen
    finally:
        if mounts:
            deeds.unmount_checkpoint()
