"""dropDuplicates over six columns, begun by one Spark and gone on with by another.

Spark before 4.3 puts five columns or more into an order of its own, which Scala 2.12 (Spark 3.5)
and 2.13 (Spark 4) have each another of; Spark 4.3 keeps the code's. The state's keys are in that
order. As a program: `dedup_order.py first FOLDER` begins the stream with the Spark that runs it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COLUMNS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot")
SCHEMA = ", ".join(f"{column} string" for column in COLUMNS)
APP = """\
from floodmark import pipeline
from dedup_order import kept, stream


@pipeline(checkpoint={checkpoint!r}, name="seen")
def seen(spark, start):
    return stream(spark, {source!r}).foreachBatch(kept({out!r}))
"""


def write_input(folder: Path, number: int) -> None:
    """All rows of the first file come again in the second, with some that are new."""
    rows = [{c: f"{c} {i * (at + 1) % 5}" for at, c in enumerate(COLUMNS)} for i in range(10)]
    if number:
        rows += [{c: f"{c} new {i}" for c in COLUMNS} for i in range(3)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def stream(spark: Any, source: str) -> Any:
    rows = spark.readStream.schema(SCHEMA).json(source).dropDuplicates(list(COLUMNS))
    return rows.writeStream.outputMode("append").trigger(availableNow=True)


def kept(out: str) -> Any:
    def keep(rows: Any, number: int) -> None:
        found = sorted(tuple(row[column] for column in COLUMNS) for row in rows.collect())
        Path(out).mkdir(parents=True, exist_ok=True)
        (Path(out) / f"{number}.json").write_text(json.dumps(found))

    return keep


def run(spark: Any, source: Path, checkpoint: Path, out: Path) -> list[Any]:
    """All rows that were put out."""
    writer = stream(spark, str(source)).foreachBatch(kept(str(out)))
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    return sorted(row for path in out.iterdir() for row in json.loads(path.read_text()))


def wanted(spark: Any, source: Path) -> list[Any]:
    rows = spark.read.schema(SCHEMA).json(str(source)).dropDuplicates(list(COLUMNS)).collect()
    return sorted([row[column] for column in COLUMNS] for row in rows)


if __name__ == "__main__":
    from continuity_matrix import session

    folder = Path(sys.argv[2])
    write_input(folder / "in", 0)
    run(session(folder), folder / "in", folder / "old", folder / "out")
