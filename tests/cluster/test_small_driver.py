"""A state several times the size of the driver's heap, rewritten by the executors.

Nothing but the plan and the checksums passes through the driver: if rows did, it would die.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floodmark import api
from floodmark.storage.machine.process import family

if TYPE_CHECKING:
    from services.cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.soak, pytest.mark.timeout(3600)]

HEAP = "480m"
"""Spark refuses less than 450 MB."""
KEYS = int(os.environ.get("FLOODMARK_CLUSTER_KEYS", "4000000"))
PARTITIONS = 12

APPLICATION = """
from floodmark import pipeline
import pyspark.sql.functions as F

@pipeline(checkpoint="{{root}}/checkpoint")
def large(spark, start, *, root, keys: int):
    rows = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", keys)
        .option("numPartitions", 12).load()
    )
    # 384 characters that do not compress.
    parts = [F.sha2(F.concat_ws("-", "value", F.lit(n)), 256) for n in range(6)]
    named = rows.select(F.col("value").alias("key"), F.concat(*parts).alias("text"))
    kept = named.groupBy("key").agg({aggregates})
    return kept.writeStream.outputMode("update").format("noop")
"""
FIRST = 'F.max("text").alias("text")'
MORE = FIRST + ', F.count("text").alias("count")'


def test_repartition_and_migrate_with_a_small_driver(cluster: SparkCluster, tmp_path: Path) -> None:
    """The cluster's machines are this one, so that its disk is one that all of them see."""
    old, spread, moved = (tmp_path / name / "checkpoint" for name in ("old", "spread", "moved"))
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(APPLICATION.format(aggregates=FIRST))
    second.write_text(APPLICATION.format(aggregates=MORE))
    kept = {
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    conf = {**cluster.conf, "spark.driver.memory": HEAP}
    session = [part for pair in conf.items() for part in ("--conf", "=".join(pair))]
    pinned = [part for pair in kept.items() for part in ("--conf", "=".join(pair))]
    session += ["--master", cluster.url]
    environment = cluster.environment

    def command(*arguments: str) -> float:
        """Seconds; what it wrote is shown, and what its own processes have held at most."""
        began = time.monotonic()
        words = [str(Path(sys.executable).with_name("floodmark")), *arguments]
        log = tmp_path / "log"
        with log.open("wb") as out:
            running = subprocess.Popen(words, stdout=out, stderr=out, env=environment)
        highest = _Highest(running.pid)
        highest.start()
        assert running.wait(1500) == 0, log.read_text()[-3000:]
        took = time.monotonic() - began
        print(f"{arguments[0]}: {took:.0f} s, driver and its JVM at most {highest.mb:.0f} MB")
        return took

    def settings(place: Path) -> list[str]:
        return ["--set", f"root={place.parent}", "--set", f"keys={KEYS}"]

    local = ["--allow", "checkpoint-on-local-disk"]
    command("run", str(first), "--once", *local, *settings(old), *session, *pinned)
    size = sum(file.stat().st_size for file in (old / "state").rglob("*") if file.is_file())
    print(f"{KEYS:,} keys, {size / 1e6:.0f} MB of state, a heap of {HEAP}")
    heap = int(HEAP.removesuffix("m")) * 2**20
    if KEYS >= 4_000_000:
        assert size > 2.5 * heap

    go = ["--on-spark", "--execute", "--wait", "60"]
    command("repartition", str(old), str(spread), "--partitions", "16", *go, *session)
    assert api.inspect(str(spread)).state[0].partitions == 16
    code = ["--app", str(second), "--default", "count=1", *settings(moved)]
    command("migrate", str(old), str(moved), *code, *go, *session)

    require_every_key(spread, KEYS)
    require_every_key(moved, KEYS, 1)


def require_every_key(place: Path, count: int, *more: int) -> None:
    """Each key once, with the text that plain Python computes for it, and what is new beside it."""
    seen = bytearray(count)
    for batch in api.state(str(place)).batches():
        keys = batch.column("key").field("key").to_pylist()
        for key, value in zip(keys, batch.column("value").to_pylist(), strict=True):
            assert tuple(value.values()) == (text_of(key), *more)
            seen[key] += 1
    assert seen == b"\1" * count


def text_of(key: int) -> str:
    return "".join(sha256(b"%d-%d" % (key, n)).hexdigest() for n in range(6))


class _Highest(threading.Thread):
    """Looks four times a second at the memory that a process and its children have."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self.mb = pid, 0.0

    def run(self) -> None:
        while Path(f"/proc/{self._pid}").exists():
            found = sum(_resident(pid) for pid in family(self._pid))
            self.mb = max(self.mb, found)
            time.sleep(0.25)


def _resident(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in lines if line.startswith("VmRSS")]
    return int(found[0]) / 1024 if found else 0.0
