"""Operators' deeds against a running driver: nothing lost, nothing twice, the right exit status.

A short campaign runs with every `make test`, the longer one is `make soak`.
FLOODMARK_DEEDS_SEED varies their order and moments, FLOODMARK_DEEDS_ROUNDS how often each is done.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from chaos.deeds import Deed, Deeds, possible
from chaos.scenario import Scenario
from mounted import can_mount

SEED = os.environ.get("FLOODMARK_DEEDS_SEED", "2026")
ROUNDS = int(os.environ.get("FLOODMARK_DEEDS_ROUNDS", "2"))
SHORT = [Deed.JVM_KILLED, Deed.BROKER_AWAY, Deed.DATABASE_AWAY, Deed.GROUP_TERMINATED]
LONG = [
    Scenario("kafka", "all", "none", "postgres"),
    Scenario("kafka", "totals", "hdfs", "delta"),
    Scenario("files", "distinct", "rocksdb", "delta-batch"),
    Scenario("files", "totals", "hdfs", "postgres"),
    Scenario("delta", "all", "none", "delta-batch"),
]
ON_S3 = Scenario("files", "totals", "hdfs", "postgres")
# Hadoop gets over an outage of minutes by itself, unless it is told to be less patient.
IMPATIENT = {
    "spark.hadoop.fs.s3a.attempts.maximum": "1",
    "spark.hadoop.fs.s3a.retry.limit": "1",
    "spark.hadoop.fs.s3a.retry.interval": "100ms",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "2s",
}


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


@pytest.fixture
def deeds_on_s3(fetched: ModuleType, tmp_path: Path) -> Iterator[Deeds]:
    from services.postgres import PostgresServer
    from services.s3 import S3Server

    jars = ",".join(map(str, fetched.spark_s3()))
    postgres_server = PostgresServer(fetched.postgres_programs())
    with postgres_server as postgres, S3Server(fetched.s3_server()) as s3:
        conf = {**s3.spark_conf, **IMPATIENT, "spark.jars": jars}
        yield Deeds(ON_S3, tmp_path / "campaign", SEED, None, postgres, s3, conf)


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
        chosen = possible(deeds.scenario, mounts) * ROUNDS
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


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_all_deeds_on_s3_lose_and_repeat_nothing(deeds_on_s3: Deeds) -> None:
    chosen = possible(ON_S3, can_mount=False, on_s3=True)
    random.Random(f"{SEED} s3").shuffle(chosen)
    deeds_on_s3.run(chosen)
    print(
        f"\nseed {SEED}, {ON_S3} on S3: {len(deeds_on_s3.done)} deeds, "
        f"{deeds_on_s3.restarts} restarts"
    )
    assert deeds_on_s3.done == chosen
