"""The scenarios that read files: one JSON file a batch, always the same rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions
from scripts.golden.pandas_state import count_by_customer, totals_processor
from scripts.golden.place import Place, Rows
from scripts.golden.scenario import Run, Scenario

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
CHANGELOG = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
FORMAT_2 = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
ORDERS = "orderId STRING, customerId STRING, amountPaid DOUBLE, at TIMESTAMP"
CLICKS = "clickId STRING, clickedBy STRING, clickedAt TIMESTAMP"
DEFAULT_STORE = {"0/default": {"operatorId": "0"}}


def order(number: int, customer: str, amount: float, minute: int) -> dict[str, Any]:
    at = f"2026-11-15T{10 + minute // 60:02}:{minute % 60:02}:00.000Z"
    return {"orderId": f"o{number}", "customerId": customer, "amountPaid": amount, "at": at}


def click(number: int, customer: str, minute: int) -> dict[str, Any]:
    at = f"2026-11-15T{10 + minute // 60:02}:{minute % 60:02}:00.000Z"
    return {"clickId": f"k{number}", "clickedBy": customer, "clickedAt": at}


# Names beyond ASCII and an empty one: both end up in keys of the state.
FIRST: Rows = [order(1, "c1", 10.5, 0), order(2, "c2", 4.0, 1), order(3, "Zoë", 7.25, 2)]
SECOND: Rows = [order(4, "c1", 1.5, 20), order(5, "", 3.0, 21), order(2, "c2", 4.0, 22)]
THIRD: Rows = [order(6, "c3", 100.0, 45), order(1, "c1", 10.5, 46)]
LATER: Rows = [order(7, "c2", 2.0, 90), order(8, "c4", 5.0, 91)]
ORDER_FILES: Sequence[Rows] = (FIRST, SECOND, THIRD)
CLICK_FILES: Sequence[Rows] = (
    [click(1, "c1", 3), click(2, "c2", 4)],
    [click(3, "c1", 23), click(4, "nobody", 24)],
    [click(5, "c3", 47)],
)
THREE_ORDERS = (Run({"in": ORDER_FILES}),)
ONE_MORE = Run({"in": [LATER]})


def orders(spark: SparkSession, place: Place, source: str = "in") -> DataFrame:
    return _json(spark.readStream, ORDERS, place, source)


def clicks(spark: SparkSession, place: Place, source: str = "clicks") -> DataFrame:
    return _json(spark.readStream, CLICKS, place, source)


def _json(reader: Any, schema: str, place: Place, source: str) -> DataFrame:
    reader = reader.schema(schema).option("maxFilesPerTrigger", 1)
    frame: DataFrame = reader.json(str(place.input(source)))
    return frame


def update(frame: DataFrame) -> Any:
    return frame.writeStream.format("noop").outputMode("update")


def append(frame: DataFrame) -> Any:
    return frame.writeStream.format("noop").outputMode("append")


def totals(spark: SparkSession, place: Place) -> DataFrame:
    paid = functions.sum("amountPaid").alias("total")
    return (
        orders(spark, place).groupBy("customerId").agg(paid, functions.count("*").alias("orders"))
    )


def sales(spark: SparkSession, place: Place) -> Any:
    return update(totals(spark, place))


def sales_each_batch(spark: SparkSession, place: Place) -> Any:
    return totals(spark, place).writeStream.outputMode("update").foreachBatch(written)


def written(frame: DataFrame, batch: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def sales_waiting_for_a_snapshot(spark: SparkSession, place: Place) -> Any:
    """Batch 3 holds still until Spark's maintenance has made a snapshot of version 3."""

    def wait_for_snapshots(frame: DataFrame, batch: int) -> None:
        deadline = time.monotonic() + 60
        while batch == 3 and len(list(place.checkpoint.glob("state/0/*/3.snapshot"))) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError("no snapshot of version 3 was made")
            time.sleep(0.05)
        written(frame, batch)

    return totals(spark, place).writeStream.outputMode("update").foreachBatch(wait_for_snapshots)


def file_sink(spark: SparkSession, place: Place) -> Any:
    paid = orders(spark, place).select("orderId", "amountPaid")
    return paid.coalesce(1).writeStream.format("json").option("path", str(place.folder / "out"))


def windowed(spark: SparkSession, place: Place) -> Any:
    late = orders(spark, place).withWatermark("at", "10 minutes")
    return append(late.groupBy(functions.window("at", "5 minutes"), "customerId").count())


def session_window(spark: SparkSession, place: Place) -> Any:
    late = orders(spark, place).withWatermark("at", "10 minutes")
    return append(late.groupBy(functions.session_window("at", "5 minutes"), "customerId").count())


def dedup(spark: SparkSession, place: Place) -> Any:
    return append(orders(spark, place).dropDuplicates(["orderId"]))


def dedup_within_watermark(spark: SparkSession, place: Place) -> Any:
    late = orders(spark, place).withWatermark("at", "10 minutes")
    return append(late.dropDuplicatesWithinWatermark(["orderId"]))


def dedup_then_totals(spark: SparkSession, place: Place) -> Any:
    once = orders(spark, place).dropDuplicates(["orderId"])
    return update(once.groupBy("customerId").agg(functions.sum("amountPaid").alias("total")))


def first_five(spark: SparkSession, place: Place) -> Any:
    return append(orders(spark, place).limit(5))


def join(spark: SparkSession, place: Place, how: str = "leftOuter") -> Any:
    bought = orders(spark, place, "orders").withWatermark("at", "10 minutes")
    seen = clicks(spark, place).withWatermark("clickedAt", "20 minutes")
    soon_after = functions.expr(
        "customerId = clickedBy AND clickedAt BETWEEN at AND at + INTERVAL 15 MINUTES"
    )
    return append(bought.join(seen, soon_after, how))


def inner_join(spark: SparkSession, place: Place) -> Any:
    return join(spark, place, "inner")


def union(spark: SparkSession, place: Place) -> Any:
    left, right = orders(spark, place, "web"), orders(spark, place, "shop")
    return append(left.unionByName(right))


def named_union(spark: SparkSession, place: Place) -> Any:
    streams = [_json(spark.readStream.name(name), ORDERS, place, name) for name in ("web", "shop")]
    return append(streams[0].unionByName(streams[1]))


def named_sink(spark: SparkSession, place: Place) -> Any:
    """PySpark has no `DataStreamWriter.name` yet; the JVM's writer does."""
    writer = sales(spark, place)
    writer._jwrite.name("totals")
    return writer


def renamed_sink(spark: SparkSession, place: Place) -> Any:
    writer = sales(spark, place)
    writer._jwrite.name("totals_again")
    return writer


def pandas_state(spark: SparkSession, place: Place) -> Any:
    grouped = orders(spark, place).groupBy("customerId")
    output = "customerId STRING, orders LONG"
    state = "orders LONG, lastOrder STRING"
    counted = grouped.applyInPandasWithState(
        count_by_customer, output, state, "update", "NoTimeout"
    )
    return update(counted)


def transform_with_state(spark: SparkSession, place: Place) -> Any:
    grouped = orders(spark, place).groupBy("customerId")
    summed = grouped.transformWithStateInPandas(
        statefulProcessor=totals_processor(),
        outputStructType="customerId STRING, total DOUBLE",
        outputMode="Update",
        timeMode="None",
    )
    return update(summed)


JOIN_RUN = (Run({"orders": ORDER_FILES, "clicks": CLICK_FILES}),)
JOIN_AFTER = Run({"orders": [LATER], "clicks": [[click(6, "c2", 93)]]})
JOIN_STORES = {
    "0/left": {"joinSide": "left"},
    "0/right": {"joinSide": "right"},
    **{
        f"0/{side}-{store}": {"storeName": f"{side}-{store}"}
        for side in ("left", "right")
        for store in ("keyToNumValues", "keyWithIndexToValue")
    },
}
# The second source has nothing at first: its offset is null until the second run.
UNION_RUNS = (Run({"web": ORDER_FILES[:2], "shop": []}), Run({"web": [THIRD], "shop": [FIRST]}))
UNION_AFTER = Run({"web": [LATER], "shop": [SECOND]})

KILLED = (
    Scenario(
        "in-flight",
        "killed in batch 2 before its job ran",
        sales_each_batch,
        THREE_ORDERS,
        Run(),
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "in-flight-state",
        "killed in batch 2 after its state was written, before its commit",
        sales_each_batch,
        THREE_ORDERS,
        Run(),
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "in-flight-first",
        "killed in batch 0: no commit at all",
        sales_each_batch,
        THREE_ORDERS,
        Run(),
    ),
)

# Each in a JVM of its own, and only when it is named.
ALONE = (
    Scenario(
        "sales-format-2-alone",
        "unique ids in a JVM that never knew format 1: 4.0 writes v2 into its zips, "
        "and no later Spark reads them",
        sales,
        THREE_ORDERS,
        ONE_MORE,
        conf={**ROCKSDB, **FORMAT_2},
        only=frozenset({(4, 0)}),
    ),
)

SCENARIOS = (
    Scenario(
        "files",
        "file source to file sink, stateless; both logs are compacted at entry 9",
        file_sink,
        (Run({"in": [[order(n, f"c{n % 3}", float(n), n)] for n in range(12)]}),),
        ONE_MORE,
        sink_output="out",
    ),
    Scenario(
        "sales-hdfs",
        "sums by customer, HDFS-backed state; Hadoop's hidden .crc files kept",
        sales,
        THREE_ORDERS,
        ONE_MORE,
        stores=DEFAULT_STORE,
        side_files=True,
    ),
    Scenario(
        "sales-hdfs-snapshot",
        "sums by customer, HDFS-backed state with a snapshot, zstd",
        sales_waiting_for_a_snapshot,
        (Run({"in": [FIRST, SECOND, THIRD, FIRST]}),),
        ONE_MORE,
        conf={
            "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
            "spark.sql.streaming.stateStore.compression.codec": "zstd",
        },
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "sales-rocksdb",
        "sums by customer, RocksDB state, a zip a batch",
        sales,
        THREE_ORDERS,
        ONE_MORE,
        conf=ROCKSDB,
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "sales-changelog",
        "sums by customer, RocksDB state: zips of a first run, changelogs of a second",
        sales,
        (Run({"in": [FIRST]}), Run({"in": [SECOND, THIRD]}, CHANGELOG)),
        Run({"in": [LATER]}, CHANGELOG),
        conf=ROCKSDB,
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "sales-format-2",
        "sums by customer, RocksDB state with unique ids: zips, then changelogs; commits v2",
        sales,
        (Run({"in": [FIRST]}), Run({"in": [SECOND, THIRD]}, CHANGELOG)),
        Run({"in": [LATER]}, CHANGELOG),
        conf={**ROCKSDB, **FORMAT_2},
        since=(4, 0),
        stores=DEFAULT_STORE,
        stores_since=(4, 1),
    ),
    Scenario(
        "sales-row-checksum",
        "sums by customer, HDFS-backed state with a checksum before every value",
        sales,
        THREE_ORDERS,
        ONE_MORE,
        conf={"spark.sql.streaming.stateStore.rowChecksum.enabled": "true"},
        since=(4, 2),
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "windowed",
        "counts in windows of 5 minutes behind a watermark of 10, in append mode",
        windowed,
        THREE_ORDERS,
        ONE_MORE,
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "session-window",
        "counts in session windows",
        session_window,
        THREE_ORDERS,
        ONE_MORE,
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "dedup",
        "dropDuplicates without a watermark: keys for ever",
        dedup,
        THREE_ORDERS,
        ONE_MORE,
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "dedup-within-watermark",
        "dropDuplicatesWithinWatermark",
        dedup_within_watermark,
        THREE_ORDERS,
        ONE_MORE,
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "dedup-then-sales",
        "two stateful operators: the sums are operator 0, the deduplication before them is 1",
        dedup_then_totals,
        THREE_ORDERS,
        ONE_MORE,
        stores={"0/default": {"operatorId": "0"}, "1/default": {"operatorId": "1"}},
    ),
    Scenario("limit", "the first five orders", first_five, THREE_ORDERS, ONE_MORE),
    Scenario(
        "join",
        "stream-stream left outer join, HDFS-backed: four stores a partition",
        join,
        JOIN_RUN,
        JOIN_AFTER,
        stores=JOIN_STORES,
    ),
    Scenario(
        "join-v1",
        "stream-stream inner join whose rows do not say whether they matched",
        inner_join,
        JOIN_RUN,
        JOIN_AFTER,
        conf={"spark.sql.streaming.join.stateFormatVersion": "1"},
        # 3.5 writes no metadata of operators; Spark 4.2 cannot begin such a state any more.
        only=frozenset({(4, 0)}),
        stores=JOIN_STORES,
    ),
    Scenario(
        "join-v3",
        "stream-stream join in one RocksDB store with four column families",
        join,
        JOIN_RUN,
        JOIN_AFTER,
        conf={**ROCKSDB, **CHANGELOG, "spark.sql.streaming.join.stateFormatVersion": "3"},
        since=(4, 1),
        stores=JOIN_STORES,
    ),
    Scenario(
        "join-v4",
        "stream-stream join whose state is ordered by event time",
        join,
        JOIN_RUN,
        JOIN_AFTER,
        conf={**ROCKSDB, **CHANGELOG, "spark.sql.streaming.join.stateFormatVersion": "4"},
        since=(4, 3),
        # By joinSide, 4.3.0's reader gives nonsense for the event time in the key.
        stores={
            f"0/{side}-{store}": {"storeName": f"{side}-{store}"}
            for side in ("left", "right")
            for store in ("keyWithTsToValues", "tsWithKey")
        },
    ),
    Scenario("union", "two file sources, one empty at first", union, UNION_RUNS, UNION_AFTER),
    Scenario(
        "offsets-v2",
        "offset log v2 with unnamed sources",
        union,
        UNION_RUNS,
        UNION_AFTER,
        conf={"spark.sql.streaming.offsetLog.formatVersion": "2"},
        since=(4, 2),
        source_ids=("0", "1"),
    ),
    Scenario(
        "named-sources",
        "offset log v2 with sources named web and shop",
        named_union,
        UNION_RUNS,
        UNION_AFTER,
        conf={
            "spark.sql.streaming.offsetLog.formatVersion": "2",
            "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
        },
        since=(4, 2),
        source_ids=("web", "shop"),
    ),
    Scenario(
        "named-sink",
        "commit log v3: a sink named totals, then one named totals_again",
        named_sink,
        (Run({"in": [FIRST]}), Run({"in": [SECOND, THIRD]}, build=renamed_sink)),
        Run({"in": [LATER]}, build=renamed_sink),
        conf={"spark.sql.streaming.queryEvolution.enableSinkEvolution": "true"},
        since=(4, 2),
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "pandas-state",
        "applyInPandasWithState",
        pandas_state,
        THREE_ORDERS,
        ONE_MORE,
        stores=DEFAULT_STORE,
    ),
    Scenario(
        "transform-with-state",
        "transformWithStateInPandas: a value, a list and a map in column families",
        transform_with_state,
        THREE_ORDERS,
        ONE_MORE,
        conf=ROCKSDB,
        since=(4, 0),
        stores={
            f"0/{variable}": {"stateVarName": variable}
            for variable in ("total", "orders", "byMinute")
        },
    ),
)
