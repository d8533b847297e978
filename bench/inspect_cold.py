"""`floodmark inspect` from a cold process, beside asking Spark and beside Python alone."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from measure import FLOODMARK, Claims, best, command_cpu_seconds, command_seconds, write_checkpoint

ASK_SPARK = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.log.level", "ERROR").getOrCreate())
print(spark.read.text(sys.argv[1] + "/offsets/99").collect()[-1][0])
spark.stop()
"""


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = str(write_checkpoint(Path(folder) / "checkpoint", batches=100))
        inspect, bare = best(
            15,
            lambda: command_cpu_seconds([FLOODMARK, "inspect", checkpoint]),
            lambda: command_cpu_seconds([sys.executable, "-c", "pass"]),
        )
        inspect_beside, spark = best(
            3,
            lambda: command_seconds([FLOODMARK, "inspect", checkpoint]),
            lambda: command_seconds([sys.executable, "-c", ASK_SPARK, checkpoint]),
        )
    print(f"processor time: inspect {inspect:.3f} s, python -c pass {bare:.3f} s")
    print(f"waiting: inspect {inspect_beside:.2f} s, Spark {spark:.2f} s")
    claims.at_least("times faster than asking Spark", spark / inspect_beside, 40)
    claims.at_most("times a bare python -c pass", inspect / bare, 15)
    claims.finish()


if __name__ == "__main__":
    main()
