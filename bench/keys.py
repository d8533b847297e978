"""State of 1 and 10 million keys (or 100, with --keys): time and memory of each verb, side by side.

    python bench/keys.py [--keys 1000000,10000000] [--folder PLACE [--keep]]

Spark makes a RocksDB state (a string key, a sum and a count), ten million new keys a batch at
most. Each verb is a cold process of its own: `state --stats`, `--key` and `--export`,
`repartition`, and a `migrate` whose new code has one aggregate more; Spark's look at that code is
not part of the measure, its saved plan is. Memory is the most that the process had at any time.
It must not grow with the keys: that is the claim. With `--keep` the states stay in the folder, and
the next run takes those that are there: 100 million keys take Spark longer than any verb.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import FLOODMARK, Claims
from state_read import PROVIDERS, session

COUNTS = (1_000_000, 10_000_000)
A_BATCH = 10_000_000
GOAL = 6
MOST_MB = 700
MORE_MB = 1.3
"""Times the memory for the fewest keys."""
APP = """\
from floodmark import pipeline
from pyspark.sql import functions as F


@pipeline(checkpoint="unused", name="totals")
def totals(spark, start):
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", {batch}).load()
    named = rows.select(F.concat(F.lit("customer-"), "value").alias("customer"), "value")
    sums = named.groupBy("customer").agg(F.sum("value"), F.count("*"){more})
    return sums.writeStream.format("noop").outputMode("update")
"""
MORE = ', F.max("value")'


@dataclass(frozen=True)
class Measure:
    seconds: float
    megabytes: float


def make(folder: str, keys: int) -> None:
    """Runs in a process of its own, which ends with its JVM."""
    from pyspark.sql.functions import concat, count, lit, sum

    spark = session("4g")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    batch = min(keys, A_BATCH)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch).load()
    named = rows.select(concat(lit("customer-"), "value").alias("customer"), "value")
    sums = named.groupBy("customer").agg(sum("value"), count("*"))
    writer = sums.writeStream.format("noop").outputMode("update")
    query = writer.option("checkpointLocation", f"{folder}/cp").start()
    last = Path(folder, "cp", "commits", str(keys // batch - 1))
    while not last.exists():
        if query.awaitTermination(0.05):
            raise SystemExit(f"the query ended: {query.exception()}")
    query.stop()
    # A batch that was planned after the last one is not part of the state.
    for later in Path(folder, "cp", "offsets").iterdir():
        if later.name.isdecimal() and int(later.name) >= keys // batch:
            later.unlink()
            later.with_name(f".{later.name}.crc").unlink(missing_ok=True)


def plan(folder: str, keys: int) -> None:
    """What `migrate` would do, in a file: Spark draws the new code for it."""
    from floodmark import api

    app = Path(folder, "app.py")
    app.write_text(APP.format(batch=min(keys, A_BATCH), more=MORE))
    api.migrate(
        f"{folder}/cp",
        f"{folder}/new",
        app=str(app),
        accept="last-start-unknown",
        out=f"{folder}/plan.json",
        wait=0,
    )


def measured(*arguments: str) -> tuple[Measure, str]:
    """One process, and the most memory that it had."""
    with tempfile.TemporaryFile() as said:
        begun = time.perf_counter()
        child = subprocess.Popen([FLOODMARK, *arguments], stdout=said)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"floodmark {' '.join(arguments)}: exit status {child.returncode}")
        said.seek(0)
        return Measure(seconds, used.ru_maxrss / 1024), said.read().decode()


def verbs(folder: Path, keys: int) -> dict[str, Measure]:
    checkpoint, new = str(folder / "cp"), str(folder / "new")
    key = json.dumps({"customer": f"customer-{keys // 3}"})
    stats, told = measured("state", checkpoint, "--stats", "--json")
    found = json.loads(told)["keys"]
    if found != keys:
        raise SystemExit(f"{found} keys were counted, {keys} were made")
    lookup, told = measured("state", checkpoint, "--key", key, "--json")
    if len(json.loads(told)["rows"]) != 1:
        raise SystemExit(f"{key} was not found: {told}")
    export, _ = measured("state", checkpoint, "--export", str(folder / "all.parquet"))
    (folder / "all.parquet").unlink()
    done = {"state --stats": stats, "state --key": lookup, "state --export": export}
    rewriting = ("--partitions", str(GOAL), "--execute", "--wait", "0")
    done["repartition"], _ = measured("repartition", checkpoint, new, *rewriting)
    shutil.rmtree(new)
    own_process(("plan", str(folder), str(keys)))
    done["migrate"], _ = measured("apply", str(folder / "plan.json"))
    shutil.rmtree(new)
    return done


def own_process(asked: tuple[str, str, str]) -> None:
    """With its JVM: one that did not end would have the memory that is measured next."""
    command = [sys.executable, __file__, "--one", *asked]
    child = subprocess.Popen(command, start_new_session=True)
    try:
        if child.wait():
            raise SystemExit(f"{' '.join(asked)}: exit status {child.returncode}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def made(keys: int, base: str | None, keep: bool) -> Iterator[Path]:
    """A folder with a state of so many keys."""
    with contextlib.ExitStack() as end:
        if keep:
            place = Path(base or ".", f"keys-{keys}")
        else:
            folder = tempfile.TemporaryDirectory(prefix="floodmark-bench-", dir=base)
            place = Path(end.enter_context(folder))
        whole = place / "whole"
        if not whole.exists():
            shutil.rmtree(place / "cp", ignore_errors=True)
            own_process(("make", str(place), str(keys)))
            whole.touch()
        yield place


def compare(counts: tuple[int, ...], base: str | None, keep: bool) -> None:
    claims, found = Claims(), {}
    for keys in counts:
        begun = time.perf_counter()
        with made(keys, base, keep) as place:
            held = sum(one.stat().st_size for one in place.rglob("*") if one.is_file())
            taken = time.perf_counter() - begun
            print(f"{keys:,} keys, {held / 1e9:.2f} GB, there in {taken:.0f} s", flush=True)
            found[keys] = verbs(place, keys)
            for verb, one in found[keys].items():
                print(f"  {verb}: {one.seconds:.1f} s, {one.megabytes:.0f} MB", flush=True)
    for verb in found[counts[0]]:
        points = [(keys, found[keys][verb]) for keys in counts]
        claims.grows(f"{verb}, memory", "keys", "MB", [(k, one.megabytes) for k, one in points])
        claims.grows(f"{verb}, time", "keys", "s", [(k, one.seconds) for k, one in points])
        fewest, most = points[0][1].megabytes, points[-1][1].megabytes
        claims.at_most(f"{verb}: megabytes for {counts[-1]:,} keys", most, MOST_MB)
        times = f"{verb}: memory for {counts[-1]:,} keys over {counts[0]:,}"
        claims.at_most(times, most / fewest, MORE_MB)
    claims.finish()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", default=",".join(map(str, COUNTS)))
    parser.add_argument("--folder", help="where the states are made; the system's own if not given")
    parser.add_argument("--keep", action="store_true", help="leave the states in the folder")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        work, folder, keys = asked.one
        {"make": make, "plan": plan}[work](folder, int(keys))
        return
    compare(tuple(int(one) for one in asked.keys.split(",")), asked.folder, asked.keep)


if __name__ == "__main__":
    main()
