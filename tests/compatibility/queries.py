"""The old queries of the matrix, each run once: two batches, a note, and a third file to come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EVENTS = (
    "user string, product string, amount double, qty long, places long, at timestamp, "
    "seen timestamp"
)
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PARTITIONS = "spark.sql.shuffle.partitions"
OFFSET_FORMAT = "spark.sql.streaming.offsetLog.formatVersion"
Build = Callable[[Any, Path], Any]


@dataclass(frozen=True)
class Old:
    """A query that ran before; `build` gives its DataStreamWriter."""

    build: Build
    conf: dict[str, str] = field(default_factory=dict)
    trigger: dict[str, bool] = field(default_factory=lambda: {"availableNow": True})


def put_events(folder: Path, batch: int) -> None:
    rows = [
        {
            "user": user,
            "product": product,
            "amount": 1.5 * batch,
            "qty": batch,
            "places": 2,
            "at": f"2026-01-01 1{batch}:0{minute}:00",
            "seen": f"2026-01-01 1{batch}:0{minute}:30",
        }
        for minute, (user, product) in enumerate(
            [("ann", "tea"), ("bob", "milk"), ("cyd", "tea"), ("ann", "rye"), ("dee", "jam")]
        )
    ]
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{batch}.tmp"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hidden.rename(folder / f"{batch}.json")


def events(spark: Any, folder: Path, name: str = "events", **options: Any) -> Any:
    reader = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1)
    return reader.options(**options).json(str(folder / name))


def late(spark: Any, folder: Path, delay: str = "10 minutes", column: str = "at") -> Any:
    return events(spark, folder).withWatermark(column, delay)


def noop(frame: Any, mode: str = "update") -> Any:
    return frame.writeStream.format("noop").outputMode(mode)


def stateless(spark: Any, folder: Path) -> Any:
    return noop(events(spark, folder).where("amount > 0").select("user", "amount"), "append")


def files(spark: Any, folder: Path, output: str = "out") -> Any:
    frame = events(spark, folder).select("user", "amount")
    return frame.writeStream.format("parquet").option("path", str(folder / output))


def totals(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    grouped = events(spark, folder).groupBy("user")
    return noop(grouped.agg(f.sum("amount").alias("total"), f.count("*").alias("n")))


def longs(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    return noop(events(spark, folder).groupBy("user").agg(f.sum("qty"), f.max("places")))


def windows(spark: Any, folder: Path, length: str = "1 hour", delay: str = "10 minutes") -> Any:
    from pyspark.sql import functions as f

    grouped = late(spark, folder, delay).groupBy(f.window("at", length), "user")
    return noop(grouped.agg(f.sum("amount").alias("total")), "append")


def sessions(spark: Any, folder: Path, gap: str = "5 minutes") -> Any:
    from pyspark.sql import functions as f

    grouped = late(spark, folder).groupBy(f.session_window("at", gap), "user")
    return noop(grouped.agg(f.count("*").alias("n")), "append")


def unique(spark: Any, folder: Path) -> Any:
    return noop(late(spark, folder).dropDuplicates(["user", "product", "at"]), "append")


def unique_within(spark: Any, folder: Path) -> Any:
    return noop(late(spark, folder).dropDuplicatesWithinWatermark(["user", "product"]), "append")


def joined(
    spark: Any,
    folder: Path,
    kind: str = "inner",
    condition: str = "l.user = r.buyer AND r.there >= l.at AND r.there <= l.at + interval 1 hour",
    right: tuple[str, ...] = ("user AS buyer", "at AS there", "qty"),
) -> Any:
    from pyspark.sql import functions as f

    left = late(spark, folder).selectExpr("user", "at", "amount").alias("l")
    other = events(spark, folder, "others").withWatermark("at", "10 minutes")
    return noop(left.join(other.selectExpr(*right).alias("r"), f.expr(condition), kind), "append")


def merged(spark: Any, folder: Path) -> Any:
    return noop(
        events(spark, folder).select("user").union(events(spark, folder, "others").select("user")),
        "append",
    )


def limited(spark: Any, folder: Path) -> Any:
    return noop(events(spark, folder).limit(100), "append")


def groups(
    spark: Any,
    folder: Path,
    state: str = "n long, sum double",
    timeout: str = "ProcessingTimeTimeout",
    key: str = "user",
    step: int = 1,
) -> Any:
    def count(key: Any, frames: Iterator[Any], held: Any) -> Iterator[Any]:
        import pandas as pd

        rows = step * sum(len(frame) for frame in frames)
        held.update((rows, float(rows)))
        yield pd.DataFrame({"key": [str(key[0])], "n": [rows]})

    grouped = late(spark, folder).groupBy(key)
    return noop(
        grouped.applyInPandasWithState(count, "key string, n long", state, "update", timeout)
    )


def _processor(total: str, kind: str, more: bool) -> Any:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Count(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.total = (
                handle.getListState("total", total)
                if kind == "list"
                else handle.getValueState("total", total)
            )
            if more:
                self.seen = handle.getValueState("seen", "at long")

        def handleInputRows(self, key: Any, rows: Any, timer: Any) -> Iterator[Any]:  # noqa: N802
            import pandas as pd

            found = sum(len(chunk) for chunk in rows)
            value = tuple(found for _ in total.split(","))
            if kind == "list":
                self.total.put([value])
            else:
                self.total.update(value)
            yield pd.DataFrame({"key": [str(key[0])], "n": [found]})

        def close(self) -> None:
            pass

    return Count()


def transformed(
    spark: Any,
    folder: Path,
    total: str = "n long",
    kind: str = "value",
    more: bool = False,
    time_mode: str = "None",
    mode: str = "Update",
) -> Any:
    grouped = late(spark, folder).select("user", "qty", "at").groupBy("user")
    frame = grouped.transformWithStateInPandas(
        _processor(total, kind, more), "key string, n long", mode, time_mode
    )
    return noop(frame, mode.lower())


OLD: dict[str, Old] = {
    "stateless": Old(stateless),
    "files": Old(files),
    "totals": Old(totals),
    "longs": Old(longs),
    "windows": Old(windows),
    "sessions": Old(sessions),
    "unique": Old(unique),
    "unique-within": Old(unique_within),
    "joined": Old(joined),
    "merged": Old(merged),
    "limited": Old(limited),
    # With timeouts of the clock there is always one more batch to run: availableNow never ends.
    "groups": Old(groups, trigger={"once": True}),
    "transformed": Old(transformed, {PROVIDER: ROCKSDB}),
    "offset-map": Old(totals, {PARTITIONS: "3", OFFSET_FORMAT: "2"}),
    "ids": Old(
        totals,
        {PROVIDER: ROCKSDB, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"},
    ),
}
