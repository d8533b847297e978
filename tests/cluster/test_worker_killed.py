"""Streams on a standalone cluster whose workers are killed in the middle of batches.

The checkpoint lies on HDFS, which executors write to themselves. What the sink holds is compared
with a plain sum over all input.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.driver import Driver
from chaos.inputs import Events, FileInput, totals
from chaos.scenario import Scenario
from chaos.sinks import DeltaSink, FilesSink
from cluster.test_small_driver import APPLICATION, FIRST, require_every_key
from floodmark import api
from floodmark.storage.files import open_files

if TYPE_CHECKING:
    from services.cluster import SparkCluster
    from services.hdfs import HdfsServer

pytestmark = [pytest.mark.spark, pytest.mark.services]

KEYS = 600_000
SLOW_MS = 250
"""On every row of what a batch puts out: it takes some seconds."""


class Stream:
    """The chaos campaigns' application with files in, its driver here and its tasks there."""

    def __init__(
        self, cluster: SparkCluster, hdfs: HdfsServer, base: Path, scenario: Scenario, seed: int
    ) -> None:
        self._cluster, self._base, self._scenario = cluster, base, scenario
        (base / "held").mkdir()
        self._where = hdfs.place("cluster")
        self._hdfs = hdfs
        self.checkpoint = hdfs.web(f"{self._where}/checkpoint")
        self.events = Events(random.Random(seed))
        self._input = FileInput(base)

    def feed(self, portions: int) -> None:
        for _ in range(portions):
            self._input.feed(self.events.portion())

    def driver(self, *arguments: str) -> Driver:
        settings = {
            "base": str(self._base),
            "where": self._hdfs.rpc(self._where),
            "source": self._scenario.source,
            "shape": self._scenario.shape,
            "sink": self._scenario.sink,
            "rows_per_batch": "12",
        }
        slow = {"spark.executorEnv.FLOODMARK_CHAOS_SLOW_MS": str(SLOW_MS)}
        return Driver(
            self._base,
            settings,
            {**self._cluster.conf, **self._scenario.conf, **slow},
            available_now=True,
            environment=self._cluster.environment,
            arguments=arguments,
            master=self._cluster.url,
        )

    def planned(self) -> int:
        """Of batches: the newest that Spark has begun; -1 before the first."""
        names = open_files(self.checkpoint).level("offsets").files
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def wait_for_batch(self, batch: int, driver: Driver) -> None:
        def is_there() -> bool:
            assert driver.status is None, driver.last_words()
            return self.planned() >= batch

        self._cluster.wait_for(is_there, 180, f"batch {batch}")

    def require_oracle(self) -> None:
        folder = self._base / "sink"
        if self._scenario.sink == "parquet":
            found = FilesSink(folder).rows(("id", "key", "amount"))
            wanted = {one.id: (one.id, one.key, one.amount) for one in self.events.made}
            assert sorted(found) == sorted(wanted.values())
            assert set(found.values()) == {1}, "a row stands there twice"
            return
        rows = DeltaSink(folder).rows(("key", "total", "events"))
        wanted_rows = {(key, *sums) for key, sums in totals(self.events.made).items()}
        assert set(rows) == wanted_rows
        assert set(rows.values()) == {1}


def test_a_worker_dies_in_a_batch_and_the_stream_goes_on(
    cluster: SparkCluster, hdfs: HdfsServer, tmp_path: Path
) -> None:
    scenario = Scenario("files", "distinct", "hdfs", "parquet")
    stream = Stream(cluster, hdfs, tmp_path, scenario, seed=1)
    stream.feed(4)
    with stream.driver() as driver:
        stream.wait_for_batch(1, driver)
        killed = cluster.kill_worker(lambda worker: bool(worker.executors()))
        assert killed not in cluster.workers
        assert driver.wait(180) == 0, driver.last_words()
    stream.require_oracle()
    assert api.inspect(stream.checkpoint).committed_batch == 3
    keys = {row["key"]["id"] for row in api.state(stream.checkpoint).to_arrow().to_pylist()}
    assert keys == {one.id for one in stream.events.made}


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario("files", "totals", "hdfs", "delta"),
        Scenario("files", "distinct", "rocksdb", "parquet"),
        Scenario("files", "totals", "rocksdb-changelog", "delta"),
    ],
    ids=str,
)
def test_worker_after_worker_dies(
    scenario: Scenario, cluster: SparkCluster, hdfs: HdfsServer, tmp_path: Path
) -> None:
    """Four kills in one run, each in another batch and at another moment; a new worker each time.

    The fourth kill takes the driver as well, and a new one goes on.
    """
    rng = random.Random(scenario.name)
    stream = Stream(cluster, hdfs, tmp_path, scenario, seed=7)
    stream.feed(9)
    with stream.driver() as driver:
        for batch in (1, 3, 5, 7):
            stream.wait_for_batch(batch, driver)
            time.sleep(rng.uniform(0, 2))
            cluster.kill_worker()
            if batch == 7:
                driver.kill()
            cluster.renew()
    stream.feed(1)
    with stream.driver() as driver:
        assert driver.wait(300) == 0, driver.last_words()
    stream.require_oracle()


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("all_die", [False, True], ids=["one", "the driver too"])
def test_a_worker_dies_under_a_repartition(
    all_die: bool, cluster: SparkCluster, tmp_path: Path
) -> None:
    """The executors write the new state; what the dead one did is done again by the other."""
    cluster.renew()
    old, new = tmp_path / "old/checkpoint", tmp_path / "new/checkpoint"
    app = tmp_path / "app.py"
    app.write_text(APPLICATION.format(aggregates=FIRST))
    pairs = {**cluster.conf, "spark.sql.shuffle.partitions": "12"}.items()
    session = [part for pair in pairs for part in ("--conf", "=".join(pair))]
    session += ["--master", cluster.url]

    def started(*arguments: str) -> subprocess.Popen[bytes]:
        words = [str(Path(sys.executable).with_name("floodmark")), *arguments, *session]
        with (tmp_path / "log").open("ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, env=cluster.environment)

    def ended_well(running: subprocess.Popen[bytes]) -> None:
        assert running.wait(400) == 0, (tmp_path / "log").read_text()[-3000:]

    given = ["--set", f"root={old.parent}", "--set", f"keys={KEYS}"]
    ended_well(started("run", str(app), "--once", "--allow", "checkpoint-on-local-disk", *given))
    command = ("repartition", str(old), str(new), "--partitions", "16", "--on-spark", "--execute")
    running = started(*command)
    try:

        def writes() -> bool:
            assert running.poll() is None, (tmp_path / "log").read_text()[-3000:]
            return len(list(new.glob("state/0/*/*.*"))) >= 3

        cluster.wait_for(writes, 200, "three files of the new state")
        cluster.kill_worker(lambda worker: bool(worker.executors()))
        if all_die:
            running.kill()
            running.wait(60)
            cluster.renew()
            running = started(*command)
        ended_well(running)
    finally:
        running.kill()
    assert api.inspect(str(new)).state[0].partitions == 16
    assert not api.doctor(str(new), read_data=True)
    require_every_key(new, KEYS)
