"""Queries whose state is rarely met: Scala's operators, every type that a key or a value can
have, join format 1, and checkpoints of odd shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_states import (
    AGGREGATION_FORMAT,
    CHECKSUM,
    CODEC,
    ENCODING,
    JOIN_FORMAT,
    JOIN_READS,
    JOIN_STORES,
    LOGGED,
    PLAIN,
    RDB,
    ROWS,
    STREAMING,
    UNIQUE,
    events,
    session_conf,
    write_input,
)

GROUP_FORMAT = STREAMING + "flatMapGroupsWithState.stateFormatVersion"
VALIDATION = STREAMING + "stateStore.formatValidation.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
CHAR_TYPES = "spark.sql.preserveCharVarcharTypeInfo"
CHAR_PADDING = "spark.sql.readSideCharPadding"
TIME_TYPE = "spark.sql.timeType.enabled"

Build = Callable[[Any, Any, Path], Any]
"""A query of a session, of the compiled Scala, and of a folder of input."""


@dataclass(frozen=True)
class Rare:
    build: Build
    conf: Mapping[str, str] = field(default_factory=dict)
    reads: Sequence[Mapping[str, str]] = tuple(PLAIN)
    mode: str = "update"
    batches: int = len(ROWS)
    write: Callable[[Path, int], None] = write_input
    operators: Sequence[int] = (0,)
    soak: bool = False
    empty: bool = False
    """No row is there to compare."""


@contextmanager
def settings(spark: Any, case: Rare) -> Iterator[None]:
    # Plans are made with the settings of the active session, which may be another test's;
    # whoever makes rows becomes it.
    spark.createDataFrame([(0,)], "a int")
    with session_conf(spark, case.conf):
        yield


def make_rare(spark: Any, code: Any, root: Path, name: str, case: Rare) -> Path:
    source, checkpoint = root / "input" / name, root / name
    with settings(spark, case):
        for batch in range(case.batches):
            case.write(source, batch)
            query = (
                case.build(spark, code, source)
                .writeStream.format("noop")
                .outputMode(case.mode)
                .option("checkpointLocation", str(checkpoint))
                .trigger(once=True)
                .start()
            )
            query.awaitTermination()
    return checkpoint


def _frame(java: Any, spark: Any) -> Any:
    from pyspark.sql import DataFrame

    return DataFrame(java, spark)


def groups(what: str, *more: str) -> Build:
    def build(spark: Any, code: Any, source: Path) -> Any:
        function = getattr(code.Groups, what)
        return _frame(function(events(spark, source)._jdf, *more), spark)

    return build


def _remember(ttl_ms: int = 0, event_time: bool = False) -> Build:
    def build(spark: Any, code: Any, source: Path) -> Any:
        made = code.Transforms.remember(events(spark, source)._jdf, ttl_ms, event_time)
        return _frame(made, spark)

    return build


REMEMBERED = [
    *({"stateVarName": name} for name in ("total", "memory", "ids", "inners", "tags", "pairs")),
    {"readRegisteredTimers": "true"},
]
DAY_MS = 86_400_000

TYPES = {
    "bool": "id % 2 = 0",
    "tiny": "cast(-id as tinyint)",
    "small": "cast(-id * 300 as smallint)",
    "whole": "cast(-id * 70000 as int)",
    "big": "-id * 3000000000",
    "flt": "cast(-id / 3 as float)",
    "dbl": "case id when 1 then double('NaN') when 3 then double('-0.0') else -id / 7 end",
    "dec18": "cast(-id * 1.25 as decimal(18,2))",
    "dec19": "cast(-id * 1.25 as decimal(19,4))",
    "dec38": "cast(-1234567890123456789012345678.0123456789 * id / id as decimal(38,10))",
    "most": "cast(repeat('9', 38) as decimal(38,0)) * if(id = 1, -1, 1)",
    "str": "if(id = 1, '', concat('ünïcode ✓ ', id))",
    "bin": "if(id = 1, X'', unhex('00FF10'))",
    "dat": "date_add(date'0001-01-01', cast(id as int))",
    "ts": "timestamp_micros(-id * 7)",
    "late": "timestamp'9999-12-31 23:59:59.999999'",
    "ntz": "timestamp_ntz'1969-12-31 23:59:59.5'",
    "ym": "make_ym_interval(-cast(id as int), -2)",
    "mm": "interval '5' month",
    "dt": "make_dt_interval(cast(-id as int), 1, 2, 3.5)",
    "hm": "interval '1:02' hour to minute",
    "tim": "time'10:11:12.123456'",
    "tim0": "cast('23:59:59' as time(0))",
    "decs": "array(cast(id as decimal(20,2)), null, cast(-1 as decimal(20,2)))",
    "bools": "array(true, null, false)",
    "tinies": "array(1Y, null, -2Y)",
    "structs": "array(named_struct('a', id, 'b', cast(null as string)), null)",
    "none": "cast(array() as array<string>)",
}
"""What a key can be; of each the row of id 2 has a null."""
VALUES = {
    **TYPES,
    "cal": "make_interval(1, 2, 3, 4, 5, 6, 7.5) * id",
    "cals": "array(make_interval(0, 0, 0, id), null)",
    "var": """parse_json(concat('{"a":', id, ',"b":[1,null,"x"]}'))""",
    "vars": """array(parse_json('1'), null, parse_json('{"k":true}'))""",
    "lists": "map('k', array(1, null), 'z', null)",
    "byint": "map(cast(id as int), named_struct('d', cast(1 as decimal(38,2)), 'e', 'x'))",
    "empty": "cast(map() as map<string,int>)",
    "nest": "named_struct('a', named_struct('b', array(array('x', null), null), 'c',"
    " parse_json('[1]')), 'd', make_interval(1), 'e', cast(null as binary))",
    "lower": "concat('Ab', id) collate UTF8_LCASE",
    "nothing": "null",
    "geog": "st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')",
    "geom": "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
}
IDS = [[1, 2, 3], [4, 5], [6, 1, 2]]


def write_ids(folder: Path, batch: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": i, "at": f"2026-01-01 10:0{batch}:00"}) for i in IDS[batch]]
    (folder / f"{batch}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _typed(spark: Any, source: Path, columns: Mapping[str, str]) -> Any:
    """The columns, null where the id is 2, and a vector of Spark ML, a user-defined type."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions

    ids = (
        spark.readStream.schema("id long, at timestamp")
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
        .withWatermark("at", "10 minutes")
    )
    made = [
        functions.expr(f"case when id = 2 then null else {said} end").alias(name)
        for name, said in columns.items()
    ]
    vector = array_to_vector(
        functions.array(functions.col("id").cast("double"), functions.lit(2.5))
    )
    return ids.select("id", "at", *made, functions.when(ids.id != 2, vector).alias("vec"))


def _first(columns: Mapping[str, str]) -> Build:
    def build(spark: Any, code: Any, source: Path) -> Any:
        from pyspark.sql import functions

        frame = _typed(spark, source, columns)
        kept = [functions.first(name) for name in ("id", *columns, "vec")]
        return frame.groupBy((frame.id % 2).alias("k")).agg(*kept)

    return build


def _distinct(columns: Mapping[str, str]) -> Build:
    def build(spark: Any, code: Any, source: Path) -> Any:
        return _typed(spark, source, columns).dropDuplicates(["id", *columns, "vec"])

    return build


def _counts_by(columns: Mapping[str, str]) -> Build:
    def build(spark: Any, code: Any, source: Path) -> Any:
        return _typed(spark, source, columns).groupBy(*columns).count()

    return build


def _typed_join(spark: Any, code: Any, source: Path) -> Any:
    left = _typed(spark, source, VALUES)
    right = _typed(spark, source, {"dec38": TYPES["dec38"]})
    right = right.selectExpr("id as other", "at as ra", "dec38 as number")
    return left.join(right, left.id == right.other, "inner")


def _inner_join(spark: Any, code: Any, source: Path) -> Any:
    from pyspark.sql import functions

    left = events(spark, source).select("name", functions.col("at").alias("la"), "amount", "id")
    right = events(spark, source).selectExpr("name as rn", "at as ra", "tags")
    near = functions.expr("name = rn AND ra >= la AND ra <= la + interval 1 hour")
    return left.join(right, near, "inner")


def _two_joins(spark: Any, code: Any, source: Path) -> Any:
    from pyspark.sql import functions

    # Spark takes one event time a stream, so only the first join forgets.
    both = _inner_join(spark, code, source).drop("ra")
    third = events(spark, source).selectExpr("name as tn", "at as ta", "id as third")
    near = functions.expr("name = tn AND ta >= la AND ta <= la + interval 1 hour")
    return both.join(third, near, "inner")


def _counted(spark: Any, code: Any, source: Path) -> Any:
    from pyspark.sql import functions

    once = events(spark, source).dropDuplicates(["name", "at"])
    return once.groupBy(functions.window("at", "1 hour")).agg(functions.count("*"))


def _nothing(spark: Any, code: Any, source: Path) -> Any:
    return events(spark, source).where("id < 0").groupBy("name").count()


def _by_name(spark: Any, code: Any, source: Path) -> Any:
    from pyspark.sql import functions

    return events(spark, source).groupBy("name").agg(functions.sum("amount"), functions.max("at"))


def _total(spark: Any, code: Any, source: Path) -> Any:
    from pyspark.sql import functions

    return events(spark, source).agg(functions.sum("amount"), functions.count("*"))


STORES = [{"storeName": name} for name in JOIN_STORES]
UNCHECKED = {VALIDATION: "false", TIME_TYPE: "true"}
"""Spark's own check of a row refuses a null calendar interval."""
WIDE = {PARTITIONS: "13"}
FAMILIES = {**UNIQUE, CODEC: "zstd", CHECKSUM: "true"}

RARE: dict[str, Rare] = {
    "groups-1-hdfs": Rare(groups("memories", "No"), {GROUP_FORMAT: "1"}),
    "groups-2-timeout-rocksdb": Rare(groups("memories", "ProcessingTime"), RDB, batches=2),
    "groups-1-rocksdb": Rare(groups("memories", "No"), {**RDB, GROUP_FORMAT: "1"}, soak=True),
    "groups-2-hdfs": Rare(groups("memories", "No"), soak=True),
    "groups-2-event-hdfs": Rare(groups("memories", "EventTime"), soak=True),
    "groups-2-number-hdfs": Rare(groups("numbers", "ProcessingTime"), soak=True),
    "groups-1-number-rocksdb": Rare(
        groups("numbers", "No"), {**LOGGED, GROUP_FORMAT: "1"}, soak=True
    ),
    "groups-timeout-alone": Rare(groups("timersAlone"), LOGGED, soak=True),
    "scala-transform-ttl": Rare(_remember(DAY_MS), LOGGED, REMEMBERED, batches=2),
    "scala-transform": Rare(_remember(), RDB, REMEMBERED, soak=True),
    "scala-transform-event-time": Rare(_remember(event_time=True), FAMILIES, REMEMBERED, soak=True),
    "scala-transform-avro": Rare(
        _remember(DAY_MS), {**LOGGED, ENCODING: "avro"}, REMEMBERED, soak=True
    ),
    "scala-transform-avro-checksum": Rare(
        _remember(event_time=True),
        {**RDB, ENCODING: "avro", CHECKSUM: "true"},
        REMEMBERED,
        soak=True,
    ),
    "types-values-hdfs": Rare(_first(VALUES), UNCHECKED, batches=1, write=write_ids),
    "types-values-rocksdb": Rare(
        _first(VALUES), {**LOGGED, **UNCHECKED}, write=write_ids, soak=True
    ),
    "types-keys-rocksdb": Rare(
        _distinct(TYPES), {**RDB, TIME_TYPE: "true"}, mode="append", batches=2, write=write_ids
    ),
    "types-keys-hdfs": Rare(
        _distinct(TYPES), {TIME_TYPE: "true"}, mode="append", write=write_ids, soak=True
    ),
    "types-key-interval": Rare(
        _distinct({"cal": VALUES["cal"]}), UNCHECKED, mode="append", write=write_ids, soak=True
    ),
    "types-key-map": Rare(
        _counts_by({name: VALUES[name] for name in ("lists", "byint")}), write=write_ids, soak=True
    ),
    "types-chars": Rare(
        _first({"c": "cast('ab' as char(5))", "v": "cast('ab' as varchar(7))"}),
        {CHAR_TYPES: "true", CHAR_PADDING: "false"},
        write=write_ids,
        soak=True,
    ),
    "types-join": Rare(
        _typed_join, UNCHECKED, [*JOIN_READS, *STORES], "append", write=write_ids, soak=True
    ),
    "join-3-families": Rare(
        _inner_join, {**FAMILIES, JOIN_FORMAT: "3"}, JOIN_READS, "append", soak=True
    ),
    "two-joins-hdfs": Rare(_two_joins, {}, JOIN_READS, "append", operators=(0, 1), soak=True),
    "two-joins-rocksdb": Rare(
        _two_joins, LOGGED, [*JOIN_READS, *STORES], "append", operators=(0, 1), soak=True
    ),
    "dedup-then-count": Rare(_counted, {}, mode="append", operators=(0, 1), soak=True),
    "dedup-then-count-rocksdb": Rare(_counted, UNIQUE, mode="append", operators=(0, 1), soak=True),
    "empty-hdfs": Rare(_nothing, {}, empty=True, soak=True),
    "empty-rocksdb": Rare(_nothing, RDB, empty=True, soak=True),
    "empty-changelog": Rare(_nothing, UNIQUE, empty=True, soak=True),
    "many-partitions-hdfs": Rare(_by_name, WIDE, soak=True),
    "many-partitions-rocksdb": Rare(_by_name, {**LOGGED, **WIDE}, soak=True),
    "many-partitions-unique": Rare(_by_name, {**UNIQUE, **WIDE, CODEC: "snappy"}, soak=True),
    "one-total": Rare(_total, {AGGREGATION_FORMAT: "1", CODEC: "lzf"}, mode="complete", soak=True),
    "one-total-rocksdb": Rare(_total, {**LOGGED, CHECKSUM: "true"}, mode="complete", soak=True),
}
