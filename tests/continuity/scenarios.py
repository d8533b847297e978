"""Changes of code that a stream must survive with its state: one record each.

`old` and `new` are the streams, in Python, over `events`. The new code is run over the
second half of the input on the carried state; what it then emits is compared with what it
emits when it ran over the first half as well, or with `expect`: the same in words of a
batch query over `first`, `second` and `everything`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

HDFS, ROCKSDB = "hdfs", "rocksdb"
ALL_SPARKS = ("3.5.9", "4.0.5", "4.1.4", "4.3.0")


@dataclass(frozen=True)
class Scenario:
    operator: str
    change: str
    old: str
    new: str
    expect: str | None = None
    mode: str = "update"
    options: Mapping[str, Any] = field(default_factory=dict)
    """What `migrate` is told."""
    migration: str | None = None
    """The text of MIGRATION.py."""
    providers: tuple[str, ...] = (HDFS, ROCKSDB)
    conf: Mapping[str, str] = field(default_factory=dict)
    since: str = "3.5"
    sparks: tuple[str, ...] = ()
    """Other releases of Spark that it is run on as well."""
    quick: bool = False
    """Part of `make test`."""
    provider: str = HDFS

    @property
    def name(self) -> str:
        return f"{self.operator}: {self.change} ({self.provider})"


def scenarios() -> Iterator[Scenario]:
    for one in _SCENARIOS:
        for provider in one.providers:
            yield replace(one, provider=provider)


def _sum(code: str) -> str:
    return f'events.groupBy("k").agg({code})'


S, N = 'F.sum("v").alias("s")', 'F.count("*").alias("n")'
PER_K = 'everything.groupBy("k").agg({}).join(second.select("k").distinct(), "k")'
LATE = 'events.withWatermark("at", "10 minutes")'
HOURS = f'{LATE}.groupBy(F.window("at", "1 hour"), "k").agg({{}})'
SESSIONS = f'{LATE}.groupBy(F.session_window("at", "5 minutes"), "k").agg({{}})'
EVERY = (
    'F.sum("v"), F.sum("d"), F.avg("x"), F.count("*"), F.max("w"), F.min("x"), F.stddev("x"), '
    'F.sort_array(F.collect_list("w")), F.approx_count_distinct("city"), F.max_by("city", "v"), '
    'F.first("k"), F.corr("x", "v"), F.bool_and(F.col("v") > 0), F.bit_xor("v")'
)
JOIN = """(
    {left}.alias("l").join({right}.alias("r"),
        F.expr("{on} AND r.at2 BETWEEN l.at AND l.at + interval 1 hour"), "{kind}")
)"""
GROUPS = """events.groupBy("k").applyInPandasWithState(
    {function}, "k string, total long", "{state}", "update", "NoTimeout")"""
TWS = """{rows}.groupBy("k").transformWithStateInPandas(
    statefulProcessor=processor("{processor}"), outputStructType="k string, total long",
    outputMode="{mode}", timeMode="{time}")"""


def transformed(
    processor: str, mode: str = "Update", time: str = "None", rows: str = "events"
) -> str:
    """Not in processing time: there, Spark runs batches for timers without an end."""
    return TWS.format(processor=processor, mode=mode, time=time, rows=rows)


def join(left: str, right: str, on: str = "l.k = r.k2", kind: str = "inner") -> str:
    return JOIN.format(left=left, right=right, on=on, kind=kind)


LEFT = f'{LATE}.select("k", "w", "at", "v")'
RIGHT = (
    f'{LATE}.select(F.col("k").alias("k2"), F.col("w").alias("w2"), F.col("at").alias("at2"), '
    '"city")'
)
_OTHERS = ALL_SPARKS

_SCENARIOS = (
    Scenario(
        "aggregation",
        "an aggregate added",
        _sum(S),
        _sum(f"{S}, {N}"),
        f"{PER_K.format(S)}.join(second.groupBy('k').agg({N}), 'k').select('k', 's', 'n')",
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "aggregation",
        "an aggregate added, with unique ids",
        _sum(S),
        _sum(f"{S}, {N}"),
        f"{PER_K.format(S)}.join(second.groupBy('k').agg({N}), 'k').select('k', 's', 'n')",
        providers=(ROCKSDB,),
        conf={"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"},
        # Spark 4.0 has them, but which zips it reads depends on what its JVM did first.
        since="4.1",
        sparks=("4.1.4", "4.3.0"),
    ),
    Scenario(
        "aggregation",
        "an aggregate added in front",
        _sum(S),
        _sum(f'F.max("v").alias("m"), {S}'),
        f"{PER_K.format(S)}.join(second.groupBy('k').agg(F.max('v').alias('m')), 'k')"
        ".select('k', 'm', 's')",
    ),
    Scenario(
        "aggregation",
        "an aggregate added with a default",
        _sum(S),
        _sum(f"{S}, {N}"),
        f"{PER_K.format(S)}.join(second.groupBy('k').agg((F.count('*') + F.when(F.col('k')"
        ".isin('a', 'b', 'c'), 100).otherwise(0)).alias('n')), 'k').select('k', 's', 'n')",
        options={"default": ["count=100"]},
    ),
    Scenario(
        "aggregation",
        "an average added",
        _sum(S),
        _sum(f'{S}, F.avg("x").alias("m")'),
        f"{PER_K.format(S)}.join(second.groupBy('k').agg(F.avg('x').alias('m')), 'k')"
        ".select('k', 's', 'm')",
    ),
    Scenario("aggregation", "an aggregate removed", _sum(f"{S}, {N}"), _sum(N), sparks=_OTHERS),
    Scenario(
        "aggregation",
        "aggregates reordered",
        _sum(f'{S}, F.sum("w").alias("t")'),
        _sum(f'F.sum("w").alias("t"), {S}'),
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "aggregation",
        "one removed, others reordered",
        _sum(f'{S}, {N}, F.max("x").alias("m")'),
        _sum(f'F.max("x").alias("m"), {S}'),
    ),
    Scenario(
        "aggregation",
        "a type widened",
        _sum('F.max("w").alias("m")'),
        'events.withColumn("w", F.col("w").cast("long")).groupBy("k").agg(F.max("w").alias("m"))',
        sparks=_OTHERS,
    ),
    Scenario(
        "aggregation",
        "a key widened",
        'events.groupBy("w").agg(F.sum("v").alias("s"))',
        'events.withColumn("w", F.col("w").cast("long")).groupBy("w").agg(F.sum("v").alias("s"))',
        # A long has another hash than an int: over two partitions few keys would show it.
        conf={"spark.sql.shuffle.partitions": "7"},
        quick=True,
    ),
    Scenario(
        "one pass",
        "an aggregate less, a key widened, 5 partitions, RocksDB",
        'events.groupBy("w").agg(F.sum("v").alias("s"), F.count("*").alias("n"))',
        'events.withColumn("w", F.col("w").cast("long")).groupBy("w").agg(F.sum("v").alias("s"))',
        "everything.groupBy(F.col('w').cast('long').alias('w')).agg(F.sum('v').alias('s'))"
        ".join(second.select(F.col('w').cast('long')).distinct(), 'w')",
        options={"partitions": 5, "provider": "rocksdb"},
        providers=(HDFS,),
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "one pass",
        "a deduplication added, 3 partitions, HDFS files",
        _sum(N),
        f'events.dropDuplicates(["id"]).groupBy("k").agg({N})',
        "first.unionByName(second.dropDuplicates(['id'])).groupBy('k').agg(F.count('*').alias('n'))"
        ".join(second.select('k').distinct(), 'k')",
        options={"partitions": 3, "provider": "hdfs"},
        providers=(ROCKSDB,),
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "one pass",
        "a column less in a join, 4 partitions, RocksDB",
        join(LEFT, RIGHT),
        join(LEFT, RIGHT).replace(', "city")', ")"),
        mode="append",
        options={"partitions": 4, "provider": "rocksdb"},
        providers=(HDFS,),
    ),
    Scenario(
        "one pass",
        "a variable less, 3 partitions",
        transformed("Collections"),
        transformed("FewerCollections"),
        options={"accept": ["dropped-field"], "partitions": 3},
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "aggregation",
        "a key may be null now",
        'events.withColumn("k", F.coalesce("k", F.lit("?"))).groupBy("k").agg(F.sum("v"))',
        'events.groupBy("k").agg(F.sum("v"))',
        options={"accept": ["keys-mean-another"]},
    ),
    Scenario(
        "aggregation",
        "a value may be null now",
        'events.withColumn("w", F.coalesce("w", F.lit(0))).groupBy("k").agg(F.first("w"))',
        'events.groupBy("k").agg(F.first("w"))',
        options={"rename": ["coalesce(w, 0)=w"]},
    ),
    Scenario(
        "aggregation",
        "a key renamed",
        _sum(S),
        'events.withColumnRenamed("k", "customer").groupBy("customer").agg(F.sum("v").alias("s"))',
        options={"rename": ["k=customer"]},
    ),
    Scenario(
        "aggregation",
        "an input renamed",
        _sum(S),
        'events.withColumnRenamed("v", "amount").groupBy("k").agg(F.sum("amount").alias("s"))',
    ),
    Scenario(
        # Both are text: Spark's hash of a key depends on their order, and nothing else does.
        "aggregation",
        "keys reordered",
        'events.groupBy("k", "city").agg(F.sum("v").alias("s"))',
        'events.groupBy("city", "k").agg(F.sum("v").alias("s"))',
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "aggregation",
        "fewer keys, merged",
        'events.groupBy("k", "city").agg(F.sum("v").alias("s"), F.count("*").alias("n"), '
        'F.max("x").alias("m"))',
        'events.groupBy("k").agg(F.sum("v").alias("s"), F.count("*").alias("n"), '
        'F.max("x").alias("m"))',
        options={"merge": ["sum=sum", "count=sum", "max=max"]},
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "aggregation",
        "fewer keys, merged by a function",
        'events.groupBy("k", "city").agg(F.sum("v").alias("s"), F.count("*").alias("n"), '
        'F.max("x").alias("m"))',
        'events.groupBy("k").agg(F.sum("v").alias("s"), F.count("*").alias("n"), '
        'F.max("x").alias("m"))',
        migration="""
def added(values, name):
    return sum(value[name] for value in values)


def merge(key, values):
    most = max(value["max"] for value in values)
    return {"sum": added(values, "sum"), "count": added(values, "count"), "max": most}
""",
        sparks=("3.5.9", "4.3.0"),
    ),
    Scenario(
        "aggregation",
        "a watermark added",
        _sum(S),
        f'{LATE}.groupBy("k").agg({S})',
    ),
    Scenario(
        "aggregation",
        "every kind of aggregate, one added",
        _sum(EVERY),
        _sum(f'F.bit_or("w").alias("o"), {EVERY}'),
        f'{PER_K.format(EVERY)}.join(second.groupBy("k").agg(F.bit_or("w").alias("o")), "k")'
        '.select("k", "o", *[c for c in everything.groupBy("k").agg('
        f'{EVERY}).columns if c != "k"])',
        sparks=_OTHERS,
    ),
    Scenario(
        "aggregation",
        "a list added",
        _sum(N),
        _sum(f'{N}, F.sort_array(F.collect_list("v")).alias("l")'),
        f"{PER_K.format(N)}.join(second.groupBy('k').agg(F.sort_array(F.collect_list('v'))"
        ".alias('l')), 'k').select('k', 'n', 'l')",
    ),
    Scenario(
        "aggregation",
        "a decimal sum added",
        _sum(N),
        _sum(f'{N}, F.sum("d").alias("t")'),
        f"{PER_K.format(N)}.join(second.groupBy('k').agg(F.sum('d').alias('t')), 'k')"
        ".select('k', 'n', 't')",
    ),
    Scenario(
        "aggregation",
        "without keys, an aggregate removed",
        'events.agg(F.sum("v").alias("s"), F.count("*").alias("n"))',
        'events.agg(F.count("*").alias("n"))',
        mode="complete",
    ),
    Scenario(
        "aggregation",
        "state format 1 becomes 2",
        _sum(S),
        _sum(S),
        conf={"spark.sql.streaming.aggregation.stateFormatVersion": "1"},
        options={"conf": ["spark.sql.streaming.aggregation.stateFormatVersion=2"]},
    ),
    Scenario(
        "aggregation",
        "a deduplication added before it",
        _sum(N),
        f'events.dropDuplicates(["id"]).groupBy("k").agg({N})',
        "first.unionByName(second.dropDuplicates(['id'])).groupBy('k').agg(F.count('*').alias('n'))"
        ".join(second.select('k').distinct(), 'k')",
    ),
    Scenario(
        "aggregation",
        "the deduplication before it removed",
        f'events.dropDuplicates(["id"]).groupBy("k").agg({N})',
        _sum(N),
        "first.dropDuplicates(['id']).unionByName(second).groupBy('k').agg(F.count('*').alias('n'))"
        ".join(second.select('k').distinct(), 'k')",
        options={"accept": ["dropped-operator"]},
    ),
    Scenario(
        "aggregation",
        "values turned by a function",
        _sum(S),
        'events.groupBy("k").agg(F.sum((F.col("v") * 10)).alias("s"))',
        migration="""
def operator_0(state):
    return state.withColumn("value", F.struct((F.col("value.sum") * 10).alias("sum")))
""",
        sparks=("3.5.9", "4.1.4"),
        quick=True,
    ),
    Scenario(
        "windowed aggregation",
        "an aggregate added",
        HOURS.format(S),
        HOURS.format(f"{S}, {N}"),
        "everything.groupBy(F.window('at', '1 hour'), 'k').agg(F.sum('v').alias('s')).join("
        "second.groupBy(F.window('at', '1 hour'), 'k').agg(F.count('*').alias('n')), "
        "['window', 'k']).select('window', 'k', 's', 'n')",
        sparks=_OTHERS,
    ),
    Scenario(
        "windowed aggregation",
        "an aggregate removed",
        HOURS.format(f"{S}, {N}"),
        HOURS.format(S),
        mode="append",
        quick=True,
    ),
    Scenario(
        "windowed aggregation",
        "aggregates reordered",
        HOURS.format(f'{S}, F.sum("w").alias("t")'),
        HOURS.format(f'F.sum("w").alias("t"), {S}'),
        mode="append",
    ),
    Scenario(
        "windowed aggregation",
        "a type widened",
        HOURS.format('F.max("w").alias("m")'),
        HOURS.format('F.max("w").alias("m")').replace(
            "events", 'events.withColumn("w", F.col("w").cast("long"))'
        ),
    ),
    Scenario(
        "windowed aggregation",
        "fewer keys, merged",
        HOURS.format(f"{S}, {N}"),
        f'{LATE}.groupBy(F.window("at", "1 hour")).agg({S}, {N})',
        options={"merge": ["sum=sum", "count=sum"]},
    ),
    Scenario(
        "windowed aggregation",
        "longer windows, by a function",
        HOURS.format(S),
        HOURS.format(S).replace("1 hour", "2 hours"),
        migration="""
def operator_0(state):
    window = F.window("key.window.start", "2 hours")
    rows = state.groupBy(window.alias("window"), F.col("key.k").alias("k"))
    rows = rows.agg(F.sum("value.sum").alias("sum"))
    return rows.select(F.struct("window", "k").alias("key"), F.struct("sum").alias("value"))
""",
        options={"accept": ["dropped-keys"]},
    ),
    Scenario(
        "no state",
        "a deduplication added",
        "events",
        'events.dropDuplicates(["k"]).select("k")',
        "second.select('k').distinct()",
        mode="append",
    ),
    Scenario(
        "no state",
        "an aggregation added",
        'events.where("v > 0")',
        _sum(N),
        f"second.groupBy('k').agg({N})",
    ),
    Scenario(
        "deduplication",
        "a column less",
        'events.dropDuplicates(["k", "city"])',
        'events.dropDuplicates(["k"])',
        mode="append",
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "deduplication",
        "columns reordered",
        'events.dropDuplicates(["k", "city"])',
        'events.dropDuplicates(["city", "k"])',
        mode="append",
    ),
    Scenario(
        "deduplication",
        "a watermark added",
        'events.dropDuplicates(["id"])',
        f'{LATE}.dropDuplicates(["id"])',
        mode="append",
    ),
    Scenario(
        "deduplication",
        "a type widened",
        'events.dropDuplicates(["w"])',
        'events.withColumn("w", F.col("w").cast("long")).dropDuplicates(["w"])',
        mode="append",
    ),
    Scenario(
        "deduplication",
        "a column renamed",
        'events.dropDuplicates(["id"])',
        'events.withColumnRenamed("id", "order").dropDuplicates(["order"])',
        mode="append",
        options={"rename": ["id=order"]},
    ),
    Scenario(
        "deduplication within a watermark",
        "a column less",
        f'{LATE}.dropDuplicatesWithinWatermark(["id", "k"])',
        f'{LATE}.dropDuplicatesWithinWatermark(["id"])',
        mode="append",
        sparks=_OTHERS,
    ),
    Scenario(
        "deduplication within a watermark",
        "a type widened",
        f'{LATE}.dropDuplicatesWithinWatermark(["w", "k"])',
        f'{LATE}.withColumn("w", F.col("w").cast("long"))'
        '.dropDuplicatesWithinWatermark(["w", "k"])',
        mode="append",
    ),
    Scenario(
        "session window",
        "an aggregate added",
        SESSIONS.format(N),
        SESSIONS.format(f'{N}, F.max("v").alias("m")'),
        "everything.where(\"at < '2026-01-01 11:00:00'\").groupBy(F.session_window('at', "
        "'5 minutes'), 'k').agg(F.count('*').alias('n')).join(second.where(\"at < '2026-01-01 "
        "11:00:00'\").groupBy('k').agg(F.max('v').alias('m')), 'k', 'left')"
        ".select('session_window', 'k', 'n', 'm')",
        mode="append",
    ),
    Scenario(
        "session window",
        "an aggregate removed",
        SESSIONS.format(f"{N}, {S}"),
        SESSIONS.format(S),
        mode="append",
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "session window",
        "aggregates reordered",
        SESSIONS.format(f'{S}, F.sum("w").alias("t")'),
        SESSIONS.format(f'F.sum("w").alias("t"), {S}'),
        mode="append",
    ),
    Scenario(
        "session window",
        "a type widened",
        SESSIONS.format('F.max("w").alias("m")'),
        SESSIONS.format('F.max("w").alias("m")').replace(
            "events", 'events.withColumn("w", F.col("w").cast("long"))'
        ),
        mode="append",
    ),
    Scenario(
        "session window",
        "a key renamed",
        SESSIONS.format(N),
        SESSIONS.format(N)
        .replace("events", 'events.withColumnRenamed("k", "customer")')
        .replace('"k").agg', '"customer").agg'),
        mode="append",
        options={"rename": ["k=customer"]},
    ),
    Scenario(
        "stream-stream join",
        "a column less on one side",
        join(LEFT, RIGHT),
        join(LEFT, RIGHT).replace(', "city")', ")"),
        mode="append",
        sparks=_OTHERS,
        quick=True,
    ),
    Scenario(
        "stream-stream join",
        "columns reordered",
        join(LEFT, RIGHT),
        join(f'{LATE}.select("v", "at", "w", "k")', RIGHT),
        mode="append",
    ),
    Scenario(
        "stream-stream join",
        "a column more on one side",
        join(f'{LATE}.select("k", "w", "at")', RIGHT),
        join(LEFT, RIGHT),
        "everything.select('k', 'w', 'at', F.when(F.col('half') == 2, F.col('v')).alias('v'), "
        "F.col('half').alias('hl')).alias('l').join(everything.select(F.col('k').alias('k2'), "
        "F.col('w').alias('w2'), F.col('at').alias('at2'), 'city', F.col('half').alias('hr'))"
        ".alias('r'), F.expr('l.k = r.k2 AND r.at2 BETWEEN l.at AND l.at + interval 1 hour'))"
        ".where('hl = 2 OR hr = 2').drop('hl', 'hr')",
        mode="append",
    ),
    Scenario(
        "stream-stream join",
        "the key widened",
        join(LEFT, RIGHT, "l.w = r.w2"),
        join(
            LEFT.replace("events", 'events.withColumn("w", F.col("w").cast("long"))'),
            RIGHT.replace("events", 'events.withColumn("w", F.col("w").cast("long"))'),
            "l.w = r.w2",
        ),
        mode="append",
    ),
    Scenario(
        "stream-stream join",
        "a column renamed",
        join(LEFT, RIGHT),
        join(f'{LATE}.select("k", "w", "at", F.col("v").alias("amount"))', RIGHT),
        mode="append",
        options={"rename": ["v=amount"]},
    ),
    Scenario(
        "stream-stream join",
        "outer, a column less",
        join(LEFT, RIGHT, kind="leftOuter"),
        join(LEFT, RIGHT, kind="leftOuter").replace(', "city")', ")"),
        mode="append",
    ),
    Scenario(
        "stream-stream join, format 3",
        "a column less on one side",
        join(LEFT, RIGHT),
        join(LEFT, RIGHT).replace(', "city")', ")"),
        mode="append",
        providers=(ROCKSDB,),
        conf={"spark.sql.streaming.join.stateFormatVersion": "3"},
        since="4.1",
        sparks=("4.1.4", "4.3.0"),
    ),
    Scenario(
        "groups with state",
        "a field added",
        GROUPS.format(function="total()", state="total long"),
        GROUPS.format(function="total_and_last()", state="total long, last long"),
        sparks=("4.0.5", "4.3.0"),
        quick=True,
    ),
    Scenario(
        "groups with state",
        "a field added with a default",
        GROUPS.format(function="total()", state="total long"),
        GROUPS.format(function="total_from()", state="total long, base long"),
        "everything.groupBy('k').agg(F.sum('v').alias('t'))"
        ".join(second.select('k').distinct(), 'k').select('k', (F.col('t') + "
        "F.when(F.col('k').isin('a', 'b', 'c'), 1000).otherwise(0))"
        ".alias('total'))",
        options={"default": ["groupState.base=1000"]},
    ),
    Scenario(
        "groups with state",
        "a field removed",
        GROUPS.format(function="total_and_last()", state="total long, last long"),
        GROUPS.format(function="total()", state="total long"),
        options={"accept": ["dropped-field"]},
    ),
    Scenario(
        "groups with state",
        "a field widened",
        GROUPS.format(function="total()", state="total int"),
        GROUPS.format(function="total()", state="total long"),
    ),
    Scenario(
        "groups with state",
        "a field renamed",
        GROUPS.format(function="total()", state="total long"),
        GROUPS.format(function="total()", state="sum_of_all long"),
    ),
    Scenario(
        "transformWithState",
        "a variable added",
        transformed("Total"),
        transformed("TotalAndCount"),
        providers=(ROCKSDB,),
        since="4.0",
        sparks=("4.0.5", "4.1.4", "4.3.0"),
        quick=True,
    ),
    Scenario(
        "transformWithState",
        "another time mode",
        transformed("Total", rows=LATE),
        transformed("Total", time="EventTime", rows=LATE),
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "transformWithState",
        "another output mode",
        transformed("Total"),
        transformed("Total", mode="Append"),
        mode="append",
        # Spark's JSON tells that something of the operator is another, and not what.
        options={"accept": ["rows-made-another-way"]},
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "transformWithState",
        "timers removed",
        transformed("Total", time="EventTime", rows=LATE),
        transformed("Total", rows=LATE),
        options={"accept": ["dropped-field"]},
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "transformWithState",
        "a variable removed",
        transformed("TotalAndCount"),
        transformed("Total"),
        options={"accept": ["dropped-field"]},
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "transformWithState",
        "a field of a variable added",
        transformed("Total"),
        transformed("TotalWithLast"),
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "transformWithState",
        "a variable widened",
        transformed("TotalInt"),
        transformed("Total"),
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "transformWithState",
        "lists and maps stay while a variable goes",
        transformed("Collections"),
        transformed("FewerCollections"),
        options={"accept": ["dropped-field"]},
        providers=(ROCKSDB,),
        since="4.0",
    ),
    Scenario(
        "transformWithState",
        "lists and maps turned by functions",
        transformed("Collections"),
        transformed("Collections"),
        "everything.groupBy('k').agg((F.sum(F.when(F.col('half') == 1, F.col('v') * 10)"
        ".otherwise(F.col('v'))) * 1000 + F.count('*') + F.countDistinct(F.when("
        "F.col('half') == 1, F.col('city'))) * 100).alias('total'))"
        ".join(second.select('k').distinct(), 'k').select('k', 'total')",
        migration="""
def operator_0_seen(state):
    tenfold = F.transform("value.elements", lambda one: F.struct((one["v"] * 10).alias("v")))
    return state.select("key", F.struct(tenfold.alias("elements")).alias("value"))


def operator_0_byCity(state):
    more = F.struct((F.col("value.user_map_value.n") + 100).alias("n")).alias("user_map_value")
    return state.select("key", F.struct("value.user_map_key", more).alias("value"))
""",
        providers=(ROCKSDB,),
        since="4.0",
        sparks=("4.1.4", "4.3.0"),
    ),
)
