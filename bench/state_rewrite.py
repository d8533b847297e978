"""State of a million keys written anew, beside what Spark itself does with it, in one run.

    python bench/state_rewrite.py [--keys 1000000]

RocksDB: `repartition` beside the engine's own repartitioning of the same state (Spark 4.2,
in a session that is warm). HDFS, which the engine refuses to repartition: beside a plain
read of the state by Spark's `statestore` reader. Ours is timed whole: read, written, read
back and compared.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import Claims, best, own_peak_memory_mb
from state_read import PARTITIONS, PROVIDERS, make, read_spark, session

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock

GOAL = 6
REPEATS = 3
ROCKSDB_MOST = 1.3
HDFS_MOST = 2.0
MOST_MB = 512
# Nobody runs the query here: the wait that makes sure of it is no part of the work.
GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


class Places:
    """A fresh folder for every run; the one before is dropped first, which is not timed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0

    def fresh(self) -> str:
        shutil.rmtree(self.folder / str(self.number), ignore_errors=True)
        self.number += 1
        return str(self.folder / str(self.number))


def ours(checkpoint: str, places: Places) -> float:
    new = places.fresh()
    return seconds(lambda: api.repartition(checkpoint, new, partitions=GOAL, carrying=GO))


def engine(spark: Any, checkpoint: str, places: Places) -> float:
    """It works in place, so it is given a copy."""
    copy = places.fresh()
    shutil.copytree(checkpoint, copy)
    return seconds(lambda: spark._streamingCheckpointManager.repartition(copy, GOAL))


def memory(checkpoint: str, new: str) -> float:
    """The most that a process of its own had at any time."""
    command = [sys.executable, __file__, "--one", checkpoint, new]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        api.repartition(*asked.one, partitions=GOAL, carrying=GO)
        print(own_peak_memory_mb())
        return
    compare(asked.keys)


def compare(keys: int) -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="floodmark-bench-") as place:
        spark = session()
        _ = spark.streams.active
        made = {name: make(spark, Path(place), name, keys) for name in PROVIDERS}
        places = Places(Path(place, "runs"))
        print(f"{keys} keys, from {PARTITIONS} to {GOAL} partitions; best of {REPEATS}, in turns")
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
        theirs, mine = best(
            REPEATS,
            lambda: engine(spark, made["rocksdb"], places),
            lambda: ours(made["rocksdb"], places),
        )
        print(f"rocksdb: engine {theirs:.2f} s, floodmark {mine:.2f} s")
        claims.at_most("rocksdb: repartition over the engine's own", mine / theirs, ROCKSDB_MOST)
        theirs, mine = best(
            REPEATS,
            lambda: seconds(lambda: read_spark(spark, made["hdfs"])),
            lambda: ours(made["hdfs"], places),
        )
        print(f"hdfs: Spark's read {theirs:.2f} s, floodmark {mine:.2f} s")
        claims.at_most("hdfs: repartition over a read by Spark", mine / theirs, HDFS_MOST)
        spark.stop()
        for provider, checkpoint in made.items():
            used = memory(checkpoint, places.fresh())
            claims.at_most(f"{provider}: megabytes of a process that repartitions", used, MOST_MB)
    claims.finish()


if __name__ == "__main__":
    main()
