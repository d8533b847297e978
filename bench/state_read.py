"""State of a million keys: this project beside Spark's own `statestore` reader, in one run.

    python bench/state_read.py [--keys 1000000] [--export-keys 10000000]

The state (a string key, a sum and a count) is made by Spark. Each reader counts the rows
and adds up a column, so that every value is really decoded. Cold means a new process,
with all that starting it costs; warm is the best of several reads in a process that has
read before. The export is a cold process, too, whose memory the system tells.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Claims, own_peak_memory_mb

PROVIDERS = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
PARTITIONS = 4
REPEATS = 5
WARM = {"hdfs": 2.0, "rocksdb": 1.5}
COLD = {"hdfs": 8.0}
LOOKUP = 20.0
EXPORT_MB = 512
GROWTH = 1.2
"""Ten times the keys may cost this much more a key, for what noise there is."""


def session(memory: str = "3g") -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", memory)
        .config("spark.sql.shuffle.partitions", str(PARTITIONS))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def make(spark: Any, folder: Path, provider: str, keys: int) -> str:
    """Two batches, of which the second changes one key in ten."""
    from pyspark.sql import functions

    source, checkpoint = folder / f"in-{provider}", folder / f"ck-{provider}"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    for step in (1, 10):
        rows = spark.range(0, keys, step, 2)
        named = rows.select(
            functions.concat(functions.lit("customer-"), functions.col("id")).alias("customer"),
            functions.col("id").alias("amount"),
        )
        named.write.mode("append").parquet(str(source))
        events = spark.readStream.schema("customer string, amount long").parquet(str(source))
        totals = events.groupBy("customer").agg(functions.sum("amount"), functions.count("*"))
        query = (
            totals.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return str(checkpoint)


def read_spark(spark: Any, checkpoint: str) -> tuple[int, int]:
    from pyspark.sql import functions

    _ = spark.streams.active
    rows = spark.read.format("statestore").load(checkpoint)
    total = rows.agg(
        functions.count("*"), functions.sum("value.sum"), functions.max("key.customer")
    ).first()
    return int(total[0]), int(total[1])


def read_floodmark(checkpoint: str) -> tuple[int, int]:
    import pyarrow.compute as pc

    from floodmark.statestore.open import open_state
    from floodmark.storage.files import open_files
    from floodmark.storage.load import load

    files = open_files(checkpoint)
    rows = total = 0
    for batch in open_state(files, load(files)).batches():
        rows += batch.num_rows
        total += pc.sum(batch.column(2).field(0)).as_py() or 0
        pc.max(batch.column(1).field(0))
    return rows, total


def lookup_spark(spark: Any, checkpoint: str, customer: str) -> int:
    _ = spark.streams.active
    rows = spark.read.format("statestore").load(checkpoint)
    return int(rows.where(rows.key.customer == customer).first()["value"]["sum"])


def lookup_floodmark(checkpoint: str, customer: str) -> int:
    from floodmark.statestore.open import open_state
    from floodmark.storage.files import open_files
    from floodmark.storage.load import load

    files = open_files(checkpoint)
    return int(open_state(files, load(files)).lookup({"customer": customer})[0]["value"]["sum"])


def one(what: str, checkpoint: str, customer: str) -> Any:
    """What a cold process does."""
    if what == "read-floodmark":
        return read_floodmark(checkpoint)
    if what == "lookup-floodmark":
        return lookup_floodmark(checkpoint, customer)
    if what == "export-floodmark":
        return export(checkpoint)
    if what == "make":
        # Ten million keys live in maps of the JVM while it makes the state of them.
        return make(session("9g"), Path(checkpoint), "hdfs", int(customer))
    spark = session()
    if what == "read-spark":
        return read_spark(spark, checkpoint)
    return lookup_spark(spark, checkpoint, customer)


def export(checkpoint: str) -> tuple[int, int]:
    from floodmark.statestore.open import open_state
    from floodmark.storage.files import open_files
    from floodmark.storage.load import load

    files = open_files(checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        rows = open_state(files, load(files)).export(f"{folder}/state.parquet")
    return rows, round(own_peak_memory_mb())


def cold(what: str, checkpoint: str, customer: str = "") -> tuple[float, Any]:
    command = [sys.executable, __file__, "--one", what, checkpoint, customer]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - begun, json.loads(done.stdout.splitlines()[-1])


def warm(read: Any) -> tuple[float, Any]:
    read()
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        found = read()
        times.append(time.perf_counter() - begun)
    return min(times), found


def compare_provider(claims: Claims, spark: Any, folder: Path, provider: str, keys: int) -> None:
    checkpoint = make(spark, folder, provider, keys)
    theirs, expected = warm(lambda: read_spark(spark, checkpoint))
    ours, found = warm(lambda: read_floodmark(checkpoint))
    check(provider, expected, found)
    say(f"{provider}: {keys} keys, warm", theirs, ours)
    claims.at_least(f"{provider}: Spark's warm reader / floodmark", theirs / ours, WARM[provider])
    theirs, ours = in_turns("read", checkpoint)
    say(f"{provider}: {keys} keys, cold", theirs, ours)
    if provider in COLD:
        claims.at_least(f"{provider}: a cold Spark / floodmark", theirs / ours, COLD[provider])
    theirs, ours = in_turns("lookup", checkpoint, f"customer-{keys // 3}")
    say(f"{provider}: one key, cold", theirs, ours)
    claims.at_least(f"{provider}: one key through Spark / floodmark", theirs / ours, LOOKUP)


def in_turns(what: str, checkpoint: str, customer: str = "") -> tuple[float, float]:
    """The better of two cold processes each."""
    times: dict[str, list[float]] = {"spark": [], "floodmark": []}
    for _ in range(2):
        answers = []
        for who, taken in times.items():
            seconds, found = cold(f"{what}-{who}", checkpoint, customer)
            taken.append(seconds)
            answers.append(found)
        check(checkpoint, *answers)
    return min(times["spark"]), min(times["floodmark"])


def check(where: str, expected: Any, found: Any) -> None:
    if found != expected:
        raise SystemExit(f"{where}: Spark found {expected}, floodmark {found}")


def say(what: str, theirs: float, ours: float) -> None:
    print(f"{what}: Spark {theirs:.2f} s, floodmark {ours:.2f} s", flush=True)


def measure_export(claims: Claims, folder: Path, keys: int) -> None:
    a_key, taken = [], []
    for share in (keys // 100, keys // 10, keys):
        _, checkpoint = cold("make", str(folder / str(share)), str(share))
        seconds, (rows, megabytes) = cold("export-floodmark", checkpoint)
        if rows != share:
            raise SystemExit(f"{rows} of {share} rows were exported")
        a_key.append(seconds / share)
        taken.append((share, seconds))
        print(f"export of {share} keys: {seconds:.1f} s")
        claims.at_most(f"megabytes for an export of {share} keys", megabytes, EXPORT_MB)
    claims.grows("state --export", "keys", "s", taken)
    claims.at_most("time a key, ten times the keys", a_key[2] / a_key[1], GROWTH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--export-keys", type=int, default=10_000_000, help="0 leaves it out")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(*asked.one)))
        return
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="floodmark-bench-") as place:
        spark = session()
        for provider in PROVIDERS:
            compare_provider(claims, spark, Path(place), provider, asked.keys)
        spark.stop()
        if asked.export_keys:
            measure_export(claims, Path(place), asked.export_keys)
    claims.finish()


if __name__ == "__main__":
    main()
