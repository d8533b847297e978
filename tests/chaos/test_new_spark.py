"""A stateful stream from Kafka to Delta, begun under Spark 3.5 and carried to 4.2.

Its driver is killed on both sides. The new application has a checkpoint of its own, which
`upgrade` makes; what the table holds at the end is compared with all that was ever sent.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.driver import FLOODMARK, Driver
from chaos.inputs import Events, KafkaInput, distinct
from chaos.scenario import Scenario
from chaos.sinks import DeltaSink
from floodmark import api
from other_spark import environment, python_of

if TYPE_CHECKING:
    from services.kafka import KafkaServer

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.soak, pytest.mark.timeout(1800)]

OLD = "3.5.9"
MAIN = "from floodmark.cli.main import main; main()"


class Upgraded:
    def __init__(self, kafka: KafkaServer, base: Path, scenario: Scenario) -> None:
        self._base, self._scenario = base, scenario
        (base / "held").mkdir()
        self._servers = kafka.bootstrap
        self._input = KafkaInput(kafka)
        self.events = Events(random.Random(35))
        python = str(python_of(OLD))
        self._old = (python, "-c", MAIN)
        self._old_environment = environment(base / "packages", PYSPARK_PYTHON=python)
        self.kills = 0

    def feed(self, portions: int) -> None:
        for _ in range(portions):
            self._input.feed(self.events.portion())

    def driver(self, place: str, old: bool, available_now: bool = False) -> Driver:
        settings = {
            "base": str(self._base),
            "where": str(self._base),
            "place": place,
            "source": "kafka",
            "shape": self._scenario.shape,
            "sink": self._scenario.sink,
            "rows_per_batch": "12",
            "servers": self._servers,
            "topic": self._input.topic,
        }
        return Driver(
            self._base,
            settings,
            # Spark 4 turns ANSI mode on, and `run` asks to choose (FM355).
            {**self._scenario.conf, **({} if old else {"spark.sql.ansi.enabled": "false"})},
            available_now=available_now,
            environment={
                **(self._old_environment if old else {}),
                "FLOODMARK_CHAOS_SLOW_MS": "25",
            },
            program=self._old if old else (FLOODMARK,),
        )

    def kill_in(self, place: str, batch: int, old: bool) -> None:
        """Kills the driver a moment after it has planned a batch."""
        planned = self._base / place / "offsets" / str(batch)
        with self.driver(place, old) as driver:
            deadline = time.monotonic() + 240
            while not planned.exists():
                assert driver.status is None, driver.last_words()
                assert time.monotonic() < deadline, driver.last_words()
                time.sleep(0.002)
            time.sleep(0.3)
            driver.kill()
        self.kills += 1


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario("kafka", "distinct", "hdfs", "delta"),
        Scenario("kafka", "distinct", "rocksdb", "delta"),
    ],
    ids=str,
)
def test_a_stream_of_3_5_goes_on_under_4_2(
    scenario: Scenario, kafka: KafkaServer, tmp_path: Path
) -> None:
    stream = Upgraded(kafka, tmp_path, scenario)
    stream.feed(5)
    stream.kill_in("checkpoint", 1, old=True)
    stream.kill_in("checkpoint", 3, old=True)
    stream.feed(3)
    before = api.inspect(str(tmp_path / "checkpoint"))
    api.upgrade(str(tmp_path / "checkpoint"), str(tmp_path / "upgraded"), execute=True)
    now = api.inspect(str(tmp_path / "upgraded"))
    assert (now.query_id, now.committed_batch) == (before.query_id, before.committed_batch)
    latest = before.latest_batch
    assert latest is not None
    stream.kill_in("upgraded", latest + 1, old=False)
    stream.kill_in("upgraded", latest + 2, old=False)
    stream.feed(1)
    with stream.driver("upgraded", old=False, available_now=True) as driver:
        assert driver.wait(300) == 0, driver.last_words()
    rows = DeltaSink(tmp_path / "sink").rows(("id", "key", "amount"))
    wanted = {(one.id, one.key, one.amount) for one in distinct(stream.events.made)}
    assert set(rows) == wanted, "lost, or made up"
    assert set(rows.values()) == {1}, "written twice"
    print(f"{scenario}: {stream.kills} kills, {len(stream.events.made)} events, {len(rows)} rows")
