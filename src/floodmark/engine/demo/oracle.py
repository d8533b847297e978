"""Compares one batch query over all input with what the stream wrote; prints one JSON line.

It runs in a process of its own, so that it shares nothing with the stream.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def compare(folder: Path) -> dict[str, object]:
    from floodmark.engine.demo.application import ORDERS
    from floodmark.engine.spark.session import SessionOptions, build_session, passing_log

    conf = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    with passing_log("demo") as log:
        spark = build_session(SessionOptions("floodmark demo: the batch query", conf=conf, log=log))
        try:
            orders = spark.read.schema(ORDERS).option("header", True).csv(str(folder / "orders"))
            expected = {
                row[0]: row[1] for row in orders.groupBy("customerId").sum("amountPaid").collect()
            }
            totals = spark.read.parquet(str(folder / "totals"))
            found = {row["customerId"]: row["total"] for row in totals.collect()}
        finally:
            spark.stop()
    return {
        "equal": found == expected,
        "customers": len(expected),
        "batch_query": str(sum(expected.values())),
        "stream": str(sum(found.values())),
        "differ": sorted(k for k in expected | found if expected.get(k) != found.get(k))[:5],
    }


if __name__ == "__main__":
    print(json.dumps(compare(Path(sys.argv[1]))))
