"""The queries that are mutated: a pipeline's code, as a user writes it, for each kind of plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from compatibility.queries import PROVIDER, ROCKSDB


@dataclass(frozen=True)
class Query:
    name: str
    code: str
    """Statements that end with a DataFrame named `out`."""
    before: str = ""
    """Module-level code: functions and constants."""
    mode: str = "update"
    conf: dict[str, str] = field(default_factory=dict)
    sink: str = "rows"
    """`rows`: a foreachBatch; `files`: JSON files; `parts`: JSON files partitioned by k."""
    trigger: dict[str, bool] = field(default_factory=lambda: {"availableNow": True})
    changes: tuple[tuple[str, str], ...] = ()
    """What no general edit makes: a piece of the code, and what stands there instead."""
    easy: tuple[tuple[str, str], ...] = ()
    """The same, where the result cannot change."""


ALL: list[Query] = []


def _add(name: str, code: str, **more: object) -> None:
    ALL.append(Query(name, code, **more))  # type: ignore[arg-type]


LATE = 'late = read("events").withWatermark("at", "10 minutes")\n'

# Aggregations
_add(
    "totals",
    'rows = read("events").where("w > 5")\n'
    'out = rows.groupBy("k").agg(F.sum("v").alias("total"), F.count("*").alias("n"))',
)
_add(
    "overall",
    'out = read("events").agg(F.sum("v").alias("s"), F.max("w").alias("m"), F.avg("x").alias("a"))',
)
_add(
    "two-keys",
    'rows = read("events").withColumn("u", F.upper("k"))\n'
    'out = rows.groupBy("u", "g").agg(F.min("v").alias("low"), F.max("w").alias("high"))',
)
_add(
    "conditional",
    'rows = read("events")\n'
    'big = F.when(F.col("v") > 2, F.col("w")).otherwise(0)\n'
    'out = rows.groupBy("k").agg(F.sum(big).alias("big"), F.count("v").alias("n"))',
)
_add(
    "first-last",
    'rows = read("events")\n'
    'out = rows.groupBy("k").agg(F.first("v", ignorenulls=True).alias("f"), '
    'F.last("w", ignorenulls=False).alias("l"))',
)
_add(
    "statistics",
    'out = read("events").groupBy("g").agg(F.stddev_pop("x").alias("sd"), '
    'F.corr("v", "w").alias("c"), F.expr("regr_count(v, w)").alias("n"))',
    conf={PROVIDER: ROCKSDB},
)
_add(
    "lists",
    'out = read("events").groupBy("g").agg(F.sort_array(F.collect_set("k")).alias("ks"), '
    'F.approx_count_distinct("v", 0.05).alias("n"))',
)
_add(
    "filtered-sums",
    'out = read("events").groupBy("g").agg(F.expr("sum(v) FILTER (WHERE w > 20) AS s"), '
    'F.expr("max_by(k, w) AS top"))',
)
_add("rolled-up", 'out = read("events").rollup("k", "g").agg(F.sum("v").alias("s"))')
_add("cubed", 'out = read("events").cube("k", "g").agg(F.count("v").alias("n"))')
_add(
    "wide",
    'columns = [(F.col("v") * (i + 1)).alias(f"c{i}") for i in range(40)]\n'
    'rows = read("events").select("k", *columns)\n'
    'out = rows.groupBy("k").agg(*[F.sum(f"c{i}").alias(f"s{i}") for i in range(40)])',
    changes=(
        ('F.sum(f"c{i}")', 'F.sum(f"c{min(i, 38)}")'),
        ('F.sum(f"c{i}")', 'F.sum(f"c{i if i < 38 else 77 - i}")'),
        ('F.sum(f"c{i}")', '(F.sum if i < 39 else F.max)(f"c{i}")'),
        ("(i + 1)", "(i + 1 + i // 39)"),
    ),
)
_add(
    "strange-names",
    'rows = read("events").withColumn("x#1", F.col("v")).withColumn("2023_v", F.col("w"))\n'
    'out = rows.groupBy("k").agg(F.sum("`x#1`").alias("s"), F.max("`2023_v`").alias("m"))',
)
_add(
    "sorted-complete",
    'out = read("events").groupBy("k").agg(F.sum("v").alias("s")).orderBy("k")',
    mode="complete",
)
_add(
    "having",
    'out = read("events").groupBy("g").agg(F.sum("w").alias("s")).where("s > 100")'
    '.select("g", (F.col("s") * 2).alias("twice"))',
)
_add(
    "by-day",
    'rows = read("events").select(F.to_date("at").alias("d"), F.hour("at").alias("h"), "v")\n'
    'out = rows.groupBy("d", "h").agg(F.sum("v").alias("s"))',
)
_add(
    "by-text-time",
    'rows = read("events").withColumn("t", F.to_timestamp("clock", "yyyy-MM-dd HH:mm:ss"))\n'
    'out = rows.groupBy(F.date_trunc("hour", "t").alias("h")).agg(F.count("*").alias("n"))',
)
_add(
    "casts",
    'rows = read("events").withColumn("n", F.col("v").cast("int") + F.size("ys"))\n'
    'out = rows.groupBy(F.substring("day", 1, 2).alias("dd")).agg(F.sum("n").alias("s"))',
)

# Windows
_add(
    "windows",
    LATE + 'out = late.groupBy(F.window("at", "10 minutes"), "k").agg(F.sum("v").alias("s"))',
    mode="append",
)
_add(
    "sliding",
    LATE
    + 'out = late.groupBy(F.window("at", "10 minutes", "5 minutes")).agg(F.count("*").alias("n"))'
    + '.select("window.start", "window.end", "n")',
)
_add(
    "offset-windows",
    LATE
    + 'wins = F.window("at", "10 minutes", "10 minutes", "2 minutes")\n'
    + 'out = late.groupBy(wins).agg(F.max("w").alias("m"), F.min("x").alias("low"))',
    mode="append",
    conf={PROVIDER: ROCKSDB},
)
_add(
    "sessions",
    LATE
    + 'out = late.groupBy(F.session_window("at", "5 minutes"), "k").agg(F.sum("w").alias("s"))',
    mode="append",
)
_add(
    "windows-of-windows",
    LATE
    + 'small = late.groupBy(F.window("at", "5 minutes"), "k").agg(F.sum("v").alias("s"))\n'
    + 'out = small.groupBy(F.window(F.window_time("window"), "20 minutes")).agg('
    + 'F.sum("s").alias("total"), F.count("*").alias("n"))',
    mode="append",
)

# Deduplication
_add(
    "unique",
    'out = read("events").where("w > 5").dropDuplicates(["k", "v"]).select("k", "v", "g")',
    mode="append",
)
_add(
    "unique-late",
    LATE + 'out = late.dropDuplicates(["k", "v", "at"]).select("k", "v", "w", "at")',
    mode="append",
)
_add(
    "unique-within",
    LATE
    + 'rows = late.where("v < 6")\n'
    + 'out = rows.dropDuplicatesWithinWatermark(["k", "v"]).select("k", "v", "w")',
    mode="append",
    conf={PROVIDER: ROCKSDB},
)
_add(
    "unique-all",
    'out = read("events").select("k", "g", "v").dropDuplicates()',
    mode="append",
)
_add(
    "unique-items",
    'out = read("events").select(F.explode("xs").alias("item"), "g").dropDuplicates(["item", "g"])',
    mode="append",
)
_add(
    "unique-then-totals",
    LATE
    + 'one = late.dropDuplicatesWithinWatermark(["k", "v"])\n'
    + 'out = one.groupBy(F.window("at", "15 minutes")).agg(F.sum("w").alias("s"))',
    mode="append",
)

# Joins of streams
JOIN = (
    'left = read("events").withWatermark("at", "10 minutes").select("k", "v", "at")\n'
    'right = read("others").withWatermark("at", "20 minutes")'
    '.selectExpr("k AS k2", "w AS w2", "at AS at2")\n'
    'near = F.expr("k = k2 AND at2 >= at - interval 4 minutes '
    'AND at2 <= at + interval 6 minutes")\n'
)
_add("joined", JOIN + 'out = left.join(right, near, "inner")', mode="append")
_add("joined-left", JOIN + 'out = left.join(right, near, "left_outer")', mode="append")
_add(
    "joined-semi",
    JOIN + 'out = left.join(right, near, "left_semi").select("k", "v")',
    mode="append",
    conf={PROVIDER: ROCKSDB},
)
_add(
    "joined-full",
    JOIN + 'out = left.join(right, near, "full_outer").select("k", "v", "w2")',
    mode="append",
)
_add(
    "joined-plain",
    'left = read("events").where("v > 1").select("g", "v", (F.col("w") + 1).alias("p"))\n'
    'right = read("others").where("v > 2").select(F.col("g").alias("g2"), F.col("w").alias("q"))\n'
    'out = left.join(right, (left.g == right.g2) & (left.p < right.q), "inner")',
    mode="append",
)
_add(
    "joined-then-totals",
    JOIN
    + 'pairs = left.join(right, near, "inner")\n'
    + 'out = pairs.groupBy(F.window("at", "20 minutes"), "k").agg(F.sum("w2").alias("s"))',
    mode="append",
)

# A stream and a table
_STATIC = (
    "places = spark.sql(\"SELECT * FROM VALUES ('a', 7L), ('b', 9L), ('c', 11L) AS t(k2, v)\")\n"
    'rows = read("events")\n'
)
_add(
    "looked-up",
    _STATIC
    + 'both = rows.join(places, rows.k == places.k2, "inner")\n'
    + 'out = both.groupBy("k").agg(F.sum(rows.v).alias("s"))',
)
_add(
    "looked-up-left",
    _STATIC
    + 'both = rows.join(places, (rows.k == places.k2) & (rows.w > 10), "left")\n'
    + 'out = both.groupBy("g").agg(F.sum(places.v).alias("s"), F.count("*").alias("n"))',
)
_add(
    "looked-up-unique",
    'names = spark.createDataFrame([("a", "ann"), ("b", "bob")], "k2 STRING, name STRING")\n'
    'rows = read("events")\n'
    'out = rows.join(names, rows.k == names.k2, "left_outer").select("name", "v")'
    '.dropDuplicates(["name", "v"])',
    mode="append",
    changes=(('"ann"', '"anna"'), ('("b", "bob")', '("b", "ann")')),
)

_add(
    "looked-up-csv",
    'rates = spark.read.schema("k2 STRING, u LONG, u2 LONG").csv(INPUT + "/rates")\n'
    'rows = read("events")\n'
    'out = rows.join(rates, rows.k == rates.k2, "inner").groupBy("k").agg(F.sum("u").alias("s"))',
    changes=(
        ("u LONG, u2 LONG", "u2 LONG, u LONG"),
        ("spark.read", 'spark.read.option("header", True)'),
    ),
)

# Unions
_add(
    "union",
    'one = read("events").select("v", "w")\n'
    'two = read("others").select("v", "w")\n'
    'out = one.union(two).agg(F.sum("v").alias("sv"), F.sum("w").alias("sw"))',
)
_add(
    "union-unique",
    'one = read("events").where("v > 2").select("k", "v").dropDuplicates(["k", "v"])\n'
    'two = read("events").where("v < 5").select("k", "v").dropDuplicates(["k", "v"])\n'
    "out = one.union(two)",
    mode="append",
)
_add(
    "union-filters",
    'one = read("events").where("v > 2").select("g", "w")\n'
    'two = read("events").where("w > 120").select("g", "v")\n'
    'out = one.union(two).groupBy("g").agg(F.sum("w").alias("s"))',
)
_add(
    "union-by-name",
    'one = read("events").select("k", "v")\n'
    'two = read("others").select("v", "k")\n'
    'out = one.unionByName(two).groupBy("k").agg(F.count("v").alias("n"), F.max("v").alias("m"))',
)

# Generators and parsed text
_add(
    "exploded",
    'items = read("events").select(F.explode("xs").alias("item"), "v")\n'
    'out = items.groupBy("item").agg(F.sum("v").alias("s"))',
)
_add(
    "numbered",
    'items = read("events").select("w", F.posexplode("xs").alias("pos", "item"))\n'
    'out = items.groupBy("pos").agg(F.max("item").alias("m"), F.sum("w").alias("s"))',
)
_add(
    "stacked",
    "pairs = read(\"events\").selectExpr(\"stack(2, 'v', v, 'w', w) AS (name, n)\")\n"
    'out = pairs.groupBy("name").agg(F.sum("n").alias("s"))',
)
_add(
    "unpivoted",
    'pairs = read("events").unpivot(["k"], ["v", "w"], "name", "n")\n'
    'out = pairs.groupBy("name").agg(F.sum("n").alias("s"), F.max("k").alias("m"))',
)
_add(
    "json-text",
    'kinds = "a LONG, b LONG, d DATE"\n'
    'parsed = F.from_json("js", kinds, {"dateFormat": "dd/MM/yyyy"})\n'
    'texts = read("events").select(parsed.alias("r"))\n'
    'out = texts.select("r.*").groupBy("d").agg(F.sum("a").alias("s"))',
)
_add(
    "csv-text",
    'texts = read("events").select(F.from_csv("cs", "c STRING, a LONG, b LONG").alias("r"))\n'
    'out = texts.select("r.*").groupBy("c").agg(F.sum("a").alias("s"), F.max("b").alias("m"))',
)
_add(
    "json-fields",
    'fields = read("events").select(F.json_tuple("js", "a", "b").alias("p", "q"))\n'
    'out = fields.groupBy("p").agg(F.count("q").alias("n"), F.max("q").alias("m"))',
)
_add(
    "json-path",
    'fields = read("events").withColumn("p", F.get_json_object("js", "$.a"))\n'
    'out = fields.groupBy("g").agg(F.max("p").alias("m"), F.count("p").alias("n"))',
)
_add(
    "parsed-days",
    'days = read("events").withColumn("d", F.to_date("day", "dd/MM/yyyy"))\n'
    'out = days.groupBy(F.month("d").alias("m"), F.date_format("d", "E").alias("e")).count()',
)
_add(
    "csv-files",
    'rows = read("tables", CSV_SCHEMA, "csv", header=True)\n'
    'out = rows.groupBy("k").agg(F.sum("v").alias("s"), F.max("day").alias("d"), '
    'F.count("*").alias("n"))',
)

# Limits and plain streams
_add("limited", 'out = read("events").where("v > 1").select("k", "v").limit(25)', mode="append")
_add(
    "plain",
    'out = read("events").where("v > 1").select("k", "v", F.upper("g").alias("big"))',
    mode="append",
)
_add(
    "plain-files",
    'out = read("events").where("w > 30 AND v > 0").select("k", "v", "w")',
    mode="append",
    sink="files",
)
_add(
    "parted-files",
    'out = read("events").where("k IS NOT NULL").select("k", "v", F.lower("g").alias("small"))',
    mode="append",
    sink="parts",
)
_add(
    "window-files",
    LATE + 'out = late.groupBy(F.window("at", "10 minutes"), "k").agg(F.sum("w").alias("s"))',
    mode="append",
    sink="files",
)
_add(
    "plain-union",
    'one = read("events").where("v > 2").select("k", "v")\n'
    'two = read("others").where("v < 4").select("k", "v")\n'
    "out = one.union(two)",
    mode="append",
)

# Python functions
_add(
    "python-key",
    'out = read("events").groupBy(bucket("v").alias("b")).agg(F.sum("w").alias("s"))',
    before='LIMIT = 3\n\n@F.udf("string")\ndef bucket(n, low="small", high="big"):\n'
    '    if n is None:\n        return "none"\n'
    "    return low if n < LIMIT else high\n",
    changes=(('high="big"', 'high="large"'), ("n is None", "n is None or n == 0")),
    easy=(
        ("    if n is None", '    """The name of a size."""\n    if n is None'),
        ("    if n is None", "    # An empty value has a name, too.\n    if n is None"),
        ("LIMIT = 3", "UNUSED = 4\nLIMIT = 3"),
    ),
)
_add(
    "python-closure",
    'def scaled(factor):\n    return F.udf(lambda n: None if n is None else n * factor, "long")\n'
    "times = scaled(3)\n"
    'rows = read("events").select("k", times("v").alias("n"))\n'
    'out = rows.groupBy("k").agg(F.sum("n").alias("s"))',
)
_add(
    "python-filter",
    'out = read("events").where(is_odd("w")).dropDuplicates(["k", "g"]).select("k", "g")',
    before='@F.udf("boolean")\ndef is_odd(n):\n    return n % 3 == 1\n',
    mode="append",
    easy=(('@F.udf("boolean")', 'def unused(n):\n    return n\n\n\n@F.udf("boolean")'),),
)
_add(
    "python-plain",
    'out = read("events").select("k", shout("g").alias("loud"))',
    before='@F.udf("string")\ndef shout(text):\n    return text.upper() + "!"\n',
    mode="append",
)
_add(
    "python-groups",
    "def count(key, frames, held):\n"
    "    seen = held.get[0] if held.exists else 0\n"
    "    seen += sum(len(frame) for frame in frames) * 2\n"
    "    held.update((seen,))\n"
    "    import pandas as pd\n"
    '    yield pd.DataFrame({"key": [str(key[0])], "n": [seen]})\n'
    'rows = read("events").where("w > 5")\n'
    'out = rows.groupBy("k").applyInPandasWithState('
    'count, "key string, n long", "n long", "update", "NoTimeout")',
)
_add(
    "python-processor",
    'rows = read("events").where("w > 5")\n'
    'out = rows.groupBy("k").transformWithStateInPandas('
    'Count(), "key string, n long", "Update", "None")',
    before="from pyspark.sql.streaming.stateful_processor import StatefulProcessor\n\n"
    "class Count(StatefulProcessor):\n"
    "    def init(self, handle):\n"
    '        self.total = handle.getValueState("total", "n long")\n'
    "    def handleInputRows(self, key, rows, timer):\n"
    "        import pandas as pd\n"
    "        n = self.total.get()[0] if self.total.exists() else 0\n"
    "        n += sum(len(chunk) for chunk in rows) * 2\n"
    "        self.total.update((n,))\n"
    '        yield pd.DataFrame({"key": [str(key[0])], "n": [n]})\n'
    "    def close(self):\n        pass\n",
    conf={PROVIDER: ROCKSDB},
)
