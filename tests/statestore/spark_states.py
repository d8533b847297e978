"""Makes one small checkpoint for each stateful operator and provider, with Spark itself.

Run it with a folder; `states.json` there says how Spark's own reader is asked about each.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STREAMING = "spark.sql.streaming."
CHANGELOG = STREAMING + "stateStore.rocksdb.changelogCheckpointing.enabled"
FORMAT = STREAMING + "stateStore.checkpointFormatVersion"
CODEC = STREAMING + "stateStore.compression.codec"
CHECKSUM = STREAMING + "stateStore.rowChecksum.enabled"
ENCODING = STREAMING + "stateStore.encodingFormat"
JOIN_FORMAT = STREAMING + "join.stateFormatVersion"
AGGREGATION_FORMAT = STREAMING + "aggregation.stateFormatVersion"
MERGE_VERSION = STREAMING + "stateStore.rocksdb.mergeOperatorVersion"
PROVIDER = STREAMING + "stateStore.providerClass"

EVENTS = "id long, name string, amount decimal(25,3), at timestamp, tags array<string>"
ROWS = [
    [
        (1, "ann", "10.500", "2026-01-01 10:00:00", ["a", None]),
        (2, "bob", "20.250", "2026-01-01 10:01:00", []),
        (3, "a much longer name", None, "2026-01-01 10:02:00", None),
        (4, None, "-5.125", "2026-01-01 10:03:00", ["x"]),
    ],
    [
        (5, "ann", "99999999999999999999.999", "2026-01-01 10:04:00", ["b"]),
        (6, "carl", "-1.000", "2026-01-01 10:30:00", ["c", "d", "e"]),
        (7, "ünïcode ✓", "0.000", "2026-01-01 10:31:00", []),
    ],
    [
        (8, "bob", "7.000", "2026-01-01 11:00:00", ["z"]),
        (9, "dora", "8.000", "2026-01-01 11:01:00", None),
    ],
]


def write_input(folder: Path, batch: int) -> None:
    lines = [
        json.dumps({"id": i, "name": n, "amount": a, "at": t, "tags": g})
        for i, n, a, t, g in ROWS[batch]
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{batch}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def events(spark: Any, folder: Path) -> Any:
    return (
        spark.readStream.schema(EVENTS)
        .option("maxFilesPerTrigger", 1)
        .json(str(folder))
        .withWatermark("at", "10 minutes")
    )


def _aggregate(spark: Any, source: Path) -> Any:
    from pyspark.sql import functions

    return (
        events(spark, source)
        .groupBy("name", functions.window("at", "1 hour"))
        .agg(
            functions.sum("amount"),
            functions.count("*"),
            functions.collect_list("id"),
            functions.avg("amount"),
            functions.max("tags"),
        )
    )


def _average(spark: Any, source: Path) -> Any:
    from pyspark.sql import functions

    return (
        events(spark, source)
        .groupBy("name")
        .agg(functions.sum("id").alias("s"), functions.count("*"))
    )


def _dedup(spark: Any, source: Path) -> Any:
    return events(spark, source).dropDuplicates(["name", "at"])


def _dedup_plain(spark: Any, source: Path) -> Any:
    return events(spark, source).dropDuplicates(["name"])


def _dedup_within(spark: Any, source: Path) -> Any:
    return events(spark, source).dropDuplicatesWithinWatermark(["name"])


def _session(spark: Any, source: Path) -> Any:
    from pyspark.sql import functions

    return (
        events(spark, source)
        .groupBy("name", functions.session_window("at", "5 minutes"))
        .agg(functions.count("*"))
    )


def _join(spark: Any, source: Path) -> Any:
    from pyspark.sql import functions

    left = events(spark, source).select("name", functions.col("at").alias("la"), "amount")
    right = events(spark, source).select(
        functions.col("name").alias("rn"), functions.col("at").alias("ra"), "tags"
    )
    near = functions.expr("name = rn AND ra >= la AND ra <= la + interval 1 hour")
    return left.join(right, near, "leftOuter")


def _limit(spark: Any, source: Path) -> Any:
    return events(spark, source).limit(5)


def _groups(spark: Any, source: Path) -> Any:
    from pyspark.sql.streaming.state import GroupStateTimeout

    def count(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        seen, last = state.get if state.exists else (0, "")
        total = seen + sum(len(frame) for frame in frames)
        state.update((total, f"{last}{total}"))
        state.setTimeoutDuration(3_600_000)
        yield pd.DataFrame({"name": [key[0]], "total": [total]})

    return (
        events(spark, source)
        .groupBy("name")
        .applyInPandasWithState(
            count,
            "name string, total long",
            "total long, trail string",
            "update",
            GroupStateTimeout.ProcessingTimeTimeout,
        )
    )


def _processor(pandas: bool, ttl: bool) -> Any:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    ttl_ms = 86_400_000 if ttl else None

    class Remember(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.handle = handle
            self.total = handle.getValueState("total", "total long, last string", ttl_ms)
            self.ids = handle.getListState("ids", "id long", ttl_ms)
            self.tags = handle.getMapState("tags", "tag string", "times int", ttl_ms)

        def handleInputRows(self, key: Any, rows: Any, timer: Any) -> Iterator[Any]:  # noqa: N802
            found = []
            for chunk in rows:
                if pandas:
                    found += list(zip(chunk["id"], chunk["tags"], strict=True))
                else:
                    found.append((chunk["id"], chunk["tags"]))
            before = self.total.get()[0] if self.total.exists() else 0
            self.total.update((before + len(found), f"last-{found[-1][0]}"))
            for identity, tags in found:
                self.ids.appendValue((int(identity),))
                for tag in [] if tags is None else tags:
                    times = self.tags.getValue((tag,)) if self.tags.containsKey((tag,)) else (0,)
                    self.tags.updateValue((tag,), (times[0] + 1,))
            self.handle.registerTimer(4_000_000_000_000 + len(found))
            if pandas:
                import pandas as pd

                yield pd.DataFrame({"name": [key[0]], "total": [before + len(found)]})
            else:
                from pyspark.sql import Row

                yield Row(name=key[0], total=before + len(found))

        def close(self) -> None:
            pass

    return Remember()


def _transform(pandas: bool, ttl: bool = False) -> Callable[[Any, Path], Any]:
    def build(spark: Any, source: Path) -> Any:
        grouped = events(spark, source).select("name", "id", "tags").groupBy("name")
        call = grouped.transformWithStateInPandas if pandas else grouped.transformWithState
        return call(
            statefulProcessor=_processor(pandas, ttl),
            outputStructType="name string, total long",
            outputMode="Update",
            timeMode="ProcessingTime",
        )

    return build


JOIN_STORES = [
    f"{side}-{kind}"
    for side in ("left", "right")
    for kind in ("keyToNumValues", "keyWithIndexToValue")
]
JOIN_READS = [{"joinSide": "left"}, {"joinSide": "right"}]
TWS_READS = [{"stateVarName": name} for name in ("total", "ids", "tags")]
TWS_READS.append({"readRegisteredTimers": "true"})
PLAIN: list[dict[str, str]] = [{}]

RDB = {PROVIDER: ROCKSDB}
LOGGED = {**RDB, CHANGELOG: "true"}
UNIQUE = {**LOGGED, FORMAT: "2"}

# name: (query, output mode, conf, how Spark's reader is asked)
STATES: dict[str, tuple[Callable[[Any, Path], Any], str, dict[str, str], list[dict[str, str]]]] = {
    "aggregate-hdfs": (_aggregate, "update", {}, PLAIN),
    "aggregate-rocksdb": (_aggregate, "update", RDB, PLAIN),
    "aggregate-changelog": (_aggregate, "update", LOGGED, PLAIN),
    "aggregate-unique-ids": (_aggregate, "update", UNIQUE, PLAIN),
    "aggregate-format1": (_average, "update", {AGGREGATION_FORMAT: "1"}, PLAIN),
    "aggregate-zstd": (_average, "complete", {CODEC: "zstd"}, PLAIN),
    "aggregate-snappy": (_average, "complete", {CODEC: "snappy"}, PLAIN),
    "aggregate-lzf": (_average, "complete", {CODEC: "lzf"}, PLAIN),
    "aggregate-checksum": (_average, "complete", {CHECKSUM: "true"}, PLAIN),
    "aggregate-checksum-rocksdb": (_average, "complete", {**LOGGED, CHECKSUM: "true"}, PLAIN),
    "dedup-hdfs": (_dedup, "append", {}, PLAIN),
    "dedup-rocksdb": (_dedup, "append", RDB, PLAIN),
    "dedup-plain-hdfs": (_dedup_plain, "append", {}, PLAIN),
    "dedup-within-hdfs": (_dedup_within, "append", {}, PLAIN),
    "dedup-within-rocksdb": (_dedup_within, "append", LOGGED, PLAIN),
    "session-hdfs": (_session, "append", {}, PLAIN),
    "session-rocksdb": (_session, "append", RDB, PLAIN),
    "join-hdfs": (_join, "append", {}, JOIN_READS + [{"storeName": s} for s in JOIN_STORES]),
    "join-rocksdb": (_join, "append", RDB, JOIN_READS + [{"storeName": s} for s in JOIN_STORES]),
    "join-unique-ids": (_join, "append", UNIQUE, JOIN_READS),
    "join-format3": (_join, "append", {**LOGGED, JOIN_FORMAT: "3"}, JOIN_READS),
    "limit-hdfs": (_limit, "append", {}, PLAIN),
    "limit-rocksdb": (_limit, "append", RDB, PLAIN),
    "groups-hdfs": (_groups, "update", {}, PLAIN),
    "groups-rocksdb": (_groups, "update", RDB, PLAIN),
    "transform-pandas": (_transform(True), "update", RDB, TWS_READS),
    "transform-rows": (_transform(False), "update", LOGGED, TWS_READS),
    "transform-ttl": (_transform(True, ttl=True), "update", LOGGED, TWS_READS),
    "transform-unique-ids": (_transform(False), "update", UNIQUE, TWS_READS),
    "transform-avro": (_transform(False), "update", {**RDB, ENCODING: "avro"}, TWS_READS),
    "transform-avro-ttl": (
        _transform(False, ttl=True),
        "update",
        {**LOGGED, ENCODING: "avro"},
        TWS_READS,
    ),
    "transform-merge1": (_transform(False), "update", {**RDB, MERGE_VERSION: "1"}, TWS_READS),
    "transform-checksum": (_transform(False), "update", {**LOGGED, CHECKSUM: "true"}, TWS_READS),
}


def make_state(spark: Any, root: Path, name: str) -> None:
    """Three batches of one query, each ended before the next begins."""
    build, mode, conf, _ = STATES[name]
    source, checkpoint = root / "input" / name, root / name
    with session_conf(spark, conf):
        for batch in range(len(ROWS)):
            write_input(source, batch)
            query = (
                build(spark, source)
                .writeStream.format("noop")
                .outputMode(mode)
                .option("checkpointLocation", str(checkpoint))
                # Once, for a query with processing-time timeouts never comes to rest.
                .trigger(once=True)
                .start()
            )
            query.awaitTermination()


@contextmanager
def session_conf(spark: Any, conf: Mapping[str, str]) -> Iterator[None]:
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in conf:
            spark.conf.unset(key)


def start_session() -> Any:
    from pyspark.sql import SparkSession

    # Without it Spark's workers run whatever python3 the path finds first.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "3600s")
        # A worker that starts on a busy machine takes its time.
        .config("spark.python.authenticate.socketTimeout", "600s")
        .getOrCreate()
    )


def main(root: Path, names: list[str]) -> int:
    spark = start_session()
    spark.sparkContext.setLogLevel("ERROR")
    failed = 0
    for name in names or list(STATES):
        try:
            make_state(spark, root, name)
            print("made", name, flush=True)
        except Exception as error:
            failed += 1
            print("FAILED", name, str(error)[:600], flush=True)
    spark.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
