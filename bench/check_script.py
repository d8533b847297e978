"""What `floodmark check` of a plain script costs beside the session that it needs.

The other side is a plain Python process that starts Spark, builds the same query and ends
without starting it. Both build the same JVM and the same plan; `check` also plans one empty
batch, reads the checkpoint and compares. They take turns, so that a noisy neighbour hits both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import FLOODMARK, Claims, command_seconds

ROUNDS = 5
BUILD = """
import sys
from pyspark.sql import SparkSession, functions as F

spark = (SparkSession.builder.master("local[2]").appName("orders")
    .config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "4").getOrCreate())
orders = spark.readStream.schema("customer STRING, amount BIGINT, at TIMESTAMP").json("INPUT")
totals = (orders.withWatermark("at", "1 hour").groupBy(F.window("at", "5 minutes"), "customer")
    .agg(F.sum("amount").alias("total"), F.count("*").alias("orders")))
writer = (totals.writeStream.outputMode("update").format("noop")
    .option("checkpointLocation", "CHECKPOINT").trigger(availableNow=True))
"""
START = BUILD + "writer.start().awaitTermination()\n"
PLAIN = BUILD + "writer._jwrite.toString()\nspark.stop()\n"


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        (place / "input").mkdir()
        row = {"customer": "c1", "amount": 1, "at": "2026-11-16T06:00:00Z"}
        (place / "input" / "1.json").write_text(json.dumps(row) + "\n")
        scripts = {}
        for name, text in (("start", START), ("plain", PLAIN)):
            text = text.replace("INPUT", str(place / "input"))
            scripts[name] = place / f"{name}.py"
            scripts[name].write_text(text.replace("CHECKPOINT", str(place / "ck")))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Started once by `run`, so that there is a note to compare with.
        subprocess.run([FLOODMARK, "run", str(scripts["start"])], check=True, capture_output=True)
        check = [FLOODMARK, "check", str(place / "ck"), str(scripts["start"])]
        ratios = []
        for _ in range(ROUNDS):
            plain = command_seconds([sys.executable, str(scripts["plain"])])
            judged = command_seconds(check)
            ratios.append(judged / plain)
            print(f"  plain session {plain:.2f} s, check {judged:.2f} s: {judged / plain:.2f}")
    claims.at_most("check of a script against a plain session", statistics.median(ratios), 1.2)
    claims.finish()


if __name__ == "__main__":
    main()
