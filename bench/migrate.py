"""Migrating a million keys, beside what the engine does with the same state in the same run.

    python bench/migrate.py [--keys 1000000]

The state (a string key, a sum and a count) is made by Spark; the new code adds a largest
value. On RocksDB it is compared with the engine's own repartition of the same state, on HDFS
files with a plain read by Spark. All of `migrate` is measured: Spark's look at the new code,
the rewriting, the reading back. Memory is that of a process that rewrites and reads back.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Claims
from state_read import PROVIDERS, make, read_spark, session

RATIOS = {"rocksdb": 1.3, "hdfs": 2.0}
MOST_MEGABYTES = 700
TIMES = 3
UNNOTED = "last-start-unknown"  # plain Spark made the state, and noted no code
APP = """\
from floodmark import pipeline
from pyspark.sql import functions as F


@pipeline(checkpoint="unused", name="totals")
def totals(spark, start):
    events = spark.readStream.schema("customer string, amount long").parquet({source!r})
    sums = events.groupBy("customer").agg(F.sum("amount"), F.count("*"), F.max("amount"))
    return sums.writeStream.format("noop").outputMode("update")
"""


def seconds(function: Any) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def migrate(checkpoint: str, folder: Path, app: str) -> None:
    from floodmark import api
    from floodmark.changes.apply import Carrying

    new = folder / "new"
    shutil.rmtree(new, ignore_errors=True)
    api.migrate(checkpoint, str(new), app=app, accept=UNNOTED, carrying=Carrying(True, 0))


def repartition(spark: Any, checkpoint: str, folder: Path) -> float:
    """The engine's own, which works in place: on a copy."""
    place = folder / "engine"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(checkpoint, place)
    return seconds(lambda: spark._streamingCheckpointManager.repartition(str(place), 5))


def memory(folder: Path, plan: str) -> float:
    """Megabytes of a process that carries out a saved plan."""
    shutil.rmtree(folder / "new", ignore_errors=True)
    code = "import sys; from floodmark.cli.main import run; sys.exit(run(['apply', sys.argv[1]]))"
    subprocess.run([sys.executable, "-c", code, plan], check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def saved_plan(checkpoint: str, folder: Path, app: str) -> str:
    from floodmark import api
    from floodmark.changes.apply import Carrying
    from floodmark.changes.plan.saved import save_plan

    shutil.rmtree(folder / "new", ignore_errors=True)
    look = Carrying(False, 0)
    change = api.migrate(checkpoint, str(folder / "new"), app=app, accept=UNNOTED, carrying=look)
    save_plan(change.plan, str(folder / "plan.json"))
    return str(folder / "plan.json")


def compare(claims: Claims, spark: Any, folder: Path, provider: str, keys: int) -> None:
    checkpoint = make(spark, folder, provider, keys)
    path = folder / f"{provider}.py"
    path.write_text(APP.format(source=str(folder / f"in-{provider}")))
    app = str(path)
    # In turns, so that a noisy moment hits both; a copy is made before each repartition.
    ours, theirs = [], []
    for _ in range(TIMES):
        ours.append(seconds(lambda: migrate(checkpoint, folder, app)))
        if provider == "rocksdb":
            theirs.append(repartition(spark, checkpoint, folder))
        else:
            theirs.append(seconds(lambda: read_spark(spark, checkpoint)))
    what = "the engine's own repartition" if provider == "rocksdb" else "a plain read by Spark"
    print(f"{provider}: migrate {min(ours):.2f} s, {what} {min(theirs):.2f} s")
    ratio = min(ours) / min(theirs)
    claims.at_most(f"migrate of {keys} keys on {provider} / {what}", ratio, RATIOS[provider])
    megabytes = memory(folder, saved_plan(checkpoint, folder, app))
    claims.at_most(f"megabytes for {keys} keys on {provider}", megabytes, MOST_MEGABYTES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    keys = parser.parse_args().keys
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="floodmark-bench-") as place:
        spark = session()
        for provider in PROVIDERS:
            compare(claims, spark, Path(place), provider, keys)
        spark.stop()
    claims.finish()


if __name__ == "__main__":
    main()
