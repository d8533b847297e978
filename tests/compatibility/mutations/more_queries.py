"""More queries that are mutated: what Spark moves by itself, more of SQL and of Python."""

from __future__ import annotations

from compatibility.mutations.queries import JOIN, LATE, Query
from compatibility.queries import PROVIDER, ROCKSDB

MORE: list[Query] = []


def _add(name: str, code: str, **more: object) -> None:
    MORE.append(Query(name, code, **more))  # type: ignore[arg-type]


# What Spark moves or orders by itself
_add(
    "joined-two-keys",
    'left = read("events").select("k", "g", "v")\n'
    'right = read("others").selectExpr("k AS k2", "g AS g2", "w AS w2")\n'
    'out = left.join(right, F.expr("k = g2 AND g = k2"), "inner").select("v", "w2")',
    mode="append",
    changes=(
        ("k = g2 AND g = k2", "g = k2 AND k = g2"),
        ("k = g2 AND g = k2", "k = k2 AND g = g2"),
    ),
    easy=(("k = g2 AND", "g2 = k AND"),),
)
_add(
    "joined-fields",
    JOIN + 'parsed = F.from_json("js", "a LONG, b LONG, c STRING").alias("r")\n'
    'left = read("events").withWatermark("at", "10 minutes").select("k", "at", parsed)\n'
    'out = left.join(right, near, "inner").select("k", "w2", "r.a")',
    mode="append",
    changes=(('"r.a"', '"r.b"'), ('"r.a"', '"r.a", "r.b"'), ('"r.a"', '"r"')),
    easy=(('.select("k", "w2", "r.a")', '.select("k", "w2", "r").select("k", "w2", "r.a")'),),
)
_add(
    "joined-filtered",
    JOIN + 'out = left.join(right, near, "inner").where("v > 1")',
    mode="append",
    changes=(("v > 1", "v > 3"), ("v > 1", "w2 > 40"), ("v > 1", "v < 9")),
)
_add(
    "joined-left-filtered",
    JOIN + 'out = left.join(right, near, "left_outer").where("w2 IS NULL OR w2 > 5")',
    mode="append",
    changes=((" IS NULL OR w2 > 5", " > 5"), ("w2 IS NULL OR w2 > 5", "v > 2")),
)
_add(
    "keys-complete",
    'out = read("events").groupBy("k").agg(F.sum("v").alias("s")).where("k <> \'b\'")',
    mode="complete",
    changes=(("k <> 'b'", "k <> 'a'"), ("k <> 'b'", "s > 3"), ("k <> 'b'", "k > 'A'")),
)
_SUMS = 'sums = read("events").groupBy("k").agg(F.sum("v").alias("s"), F.sum("w").alias("t"))\n'
_SWAPPED = (
    'F.sum("v").alias("s"), F.sum("w").alias("t")',
    'F.sum("w").alias("t"), F.sum("v").alias("s")',
)
_add(
    "sums-selected",
    _SUMS + 'out = sums.select("k", "s", "t")',
    changes=(('"k", "s", "t"', '"k", "t", "s"'), ('"k", "s", "t"', '"k", "t"')),
    easy=(_SWAPPED,),
)
_add(
    "sums-combined",
    _SUMS + 'out = sums.select("k", (F.col("t") - F.col("s")).alias("d"), "s")',
    changes=(
        ('"t") - F.col("s")', '"s") - F.col("t")'),
        ('(F.col("t") - F.col("s")).alias("d"), "s"', '"s", (F.col("t") - F.col("s")).alias("d")'),
    ),
)
_add(
    "sums-filtered",
    _SUMS + 'out = sums.where("t > 0").withColumn("d", F.col("t") * F.col("t"))',
    changes=((".where(", '.select("k", "t", "s").where('), ("t > 0", "s > 0"), _SWAPPED),
)
_NAMES = (
    'names = spark.createDataFrame([("a", "ann"), ("b", "bob")], "k2 STRING, name STRING")\n'
    'sums = read("events").groupBy("k").agg(F.sum("v").alias("s"))\n'
)
_add(
    "totals-of-some",
    _NAMES + 'out = sums.join(names, sums.k == names.k2, "left_semi")',
    mode="complete",
    changes=(('("b", "bob")', '("c", "bob")'), ("left_semi", "left_anti"), ("== names", "> names")),
)
_add(
    "totals-named",
    _NAMES
    + 'out = sums.join(names.where("k2 < \'b\'"), F.expr("k = k2"), "inner").select("k", "s")',
    changes=(
        ("k2 < 'b'", "k2 > 'a'"),
        ("names.where(\"k2 < 'b'\")", "names"),
        ('"inner"', '"left"'),
        ("k = k2", "k <=> k2"),
        ("k = k2", "s > 1"),
    ),
)
_add(
    "windows-filtered",
    LATE
    + 'sums = late.groupBy(F.window("at", "10 minutes"), "k").agg(F.sum("w").alias("s"))\n'
    + 'out = sums.where("k = \'a\'").select("window.start", "k", "s")',
    mode="append",
    changes=(("k = 'a'", "k = 'b'"), ("k = 'a'", "s > 20"), ("\"k = 'a'\"", '"true"')),
)
_add(
    "unique-then-marked",
    'one = read("events").dropDuplicates(["k", "at"]).withWatermark("at", "10 minutes")\n'
    'out = one.select("k", "at")',
    mode="append",
    changes=(
        (
            '.dropDuplicates(["k", "at"]).withWatermark("at", "10 minutes")',
            '.withWatermark("at", "10 minutes").dropDuplicates(["k", "at"])',
        ),
    ),
)


# What the tree of a plan alone does not tell
_add(
    "read-twice",
    'rows = read("events").select("k", "v")\n'
    "again = rows\n"
    'out = rows.union(again).groupBy("k").agg(F.sum("v").alias("s"))',
    changes=(("again = rows", 'again = read("events").select("k", "v")'),),
    easy=(('"events"', '"events/"'), ("again", "once_more")),
)
_add(
    "read-by-two",
    'rows = read("events").select("k", "v")\n'
    'again = read("events").select("k", "v")\n'
    'more = read("others").select("k", "v")\n'
    'out = rows.union(again).union(more).groupBy("k").agg(F.sum("v").alias("s"))',
    changes=(('again = read("events").select("k", "v")', "again = rows"),),
)
_add(
    "marked",
    'rows = read("events").withColumn("t", F.col("at")).withWatermark("at", "10 minutes")\n'
    'out = rows.groupBy(F.window("at", "10 minutes", "5 minutes")).agg(F.sum("v").alias("s"))',
    changes=(('F.window("at"', 'F.window("t"'),),
    easy=(
        ('.withColumn("t", F.col("at"))', ""),
        (".withWatermark(", '.select("v", F.col("at").alias("at")).withWatermark('),
    ),
)
_add(
    "unique-renamed",
    'rows = read("events").select("k", "v", "at").withWatermark("at", "10 minutes")\n'
    'out = rows.dropDuplicates(["k", "v", "at"]).select("v", "at")',
    mode="append",
    easy=(
        ('.select("k", "v", "at")', '.selectExpr("k", "v AS v", "at")'),
        ('rows.dropDuplicates(["k",', 'rows.withColumnRenamed("k", "K2").dropDuplicates(["K2",'),
    ),
)

# More of SQL
_add(
    "grouping-sets",
    'read("events").createOrReplaceTempView("e")\n'
    'out = spark.sql("SELECT k, g, sum(v) AS s FROM e GROUP BY GROUPING SETS ((k), (g))")',
    changes=(
        ("((k), (g))", "((g), (k))"),
        ("((k), (g))", "((k), (k, g))"),
        ("((k), (g))", "((k), (g), ())"),
    ),
)
_add(
    "by-place",
    'read("events").createOrReplaceTempView("e")\n'
    'out = spark.sql("SELECT k, g, count(*) AS n FROM e WHERE v > 0 GROUP BY 1, 2")',
    changes=(("k, g,", "g, k,"), ("k, g,", "g, upper(k),")),
)
_add(
    "structs",
    'pairs = F.expr("array(struct(v AS a, w AS b), struct(w AS a, v AS b))")\n'
    'rows = read("events").select(F.inline(pairs).alias("p", "q"), "k")\n'
    'out = rows.groupBy("k").agg(F.sum("p").alias("s"), F.max("q").alias("m"))',
    changes=(('alias("p", "q")', 'alias("q", "p")'), ("v AS a, w AS b", "w AS a, v AS b")),
)
_add(
    "lambdas",
    "key = F.expr(\"array_join(transform(array_sort(xs), (x, i) -> concat(x, i)), '-')\")\n"
    'out = read("events").groupBy(key.alias("key")).agg(F.count("*").alias("n"))',
    changes=(("concat(x, i)", "concat(i, x)"), ("array_sort(xs)", "reverse(xs)")),
    easy=(("(x, i) -> concat(x, i)", "(one, at) -> concat(one, at)"),),
)
_add(
    "hashed",
    'rows = read("events").withColumn("h", F.sha2(F.regexp_extract("js", "(.)(.)", 1), 256))\n'
    'out = rows.withColumn("m", F.col("x").cast("decimal(6, 1)")).groupBy("h", "m").count()',
    changes=(
        (", 256", ", 512"),
        ('"(.)(.)", 1', '"(.)(.)", 2'),
        ("decimal(6, 1)", "decimal(6, 0)"),
    ),
)
_add(
    "without-nulls",
    'out = read("events").na.drop(subset=["k"]).na.fill({"v": 7}).groupBy("k").agg(F.sum("v"))',
    changes=(('["k"]', '["v"]'), ('"v": 7', '"v": 8'), ('["k"]', '["k", "v"]')),
)

# More Python
_add(
    "python-named",
    'out = read("events").groupBy("k").agg(F.sum(less(a="v", b="w")).alias("s"))',
    before='@F.udf("long")\ndef less(a, b):\n    return (a or 0) - (b or 0)\n',
    changes=(
        (
            "def less(a, b):\n    return (a or 0) - (b or 0)",
            "def less(b, a):\n    return (b or 0) - (a or 0)",
        ),
        ('a="v", b="w"', 'b="v", a="w"'),
    ),
    easy=(("def less(a, b):", 'def less(a, b):\n    """The difference."""'),),
)
_add(
    "python-inner",
    'out = read("events").groupBy("k").agg(F.sum(less("v", "w")).alias("s"))',
    before="def minus(one, two):\n    return (one or 0) - (two or 0)\n\n\n"
    '@F.udf("long")\ndef less(a, b):\n    return minus(one=a, two=b)\n',
    changes=(
        (
            "def minus(one, two):\n    return (one or 0) - (two or 0)",
            "def minus(two, one):\n    return (two or 0) - (one or 0)",
        ),
    ),
)
_add(
    "python-broadcast",
    'names = spark.sparkContext.broadcast({"a": "ann", "b": "bob"})\n'
    'named = F.udf(lambda k: names.value.get(k, "?"), "string")\n'
    'out = read("events").groupBy(named("k").alias("name")).agg(F.sum("w").alias("s"))',
    changes=(('"bob"', '"bert"'), ('"a": "ann"', '"c": "ann"')),
)
_add(
    "python-variables",
    'rows = read("events").where("w > 5")\n'
    'out = rows.groupBy("k").transformWithStateInPandas('
    'Seen(), "key string, n long, last long", "Update", "ProcessingTime")',
    before="from pyspark.sql.streaming.stateful_processor import StatefulProcessor\n\n"
    "class Seen(StatefulProcessor):\n"
    "    def init(self, handle):\n"
    '        self.total = handle.getValueState("total", "n long", ttlDurationMs=3600000)\n'
    '        self.items = handle.getListState("items", "v long")\n'
    "    def handleInputRows(self, key, rows, timer):\n"
    "        import pandas as pd\n"
    "        n = self.total.get()[0] if self.total.exists() else 0\n"
    "        for chunk in rows:\n"
    "            n += len(chunk)\n"
    '            self.items.put([(int(w),) for w in chunk["w"]])\n'
    "        self.total.update((n,))\n"
    "        last = max(one[0] for one in self.items.get())\n"
    '        yield pd.DataFrame({"key": [str(key[0])], "n": [n], "last": [last]})\n'
    "    def close(self):\n        pass\n",
    conf={PROVIDER: ROCKSDB},
    changes=(
        (", ttlDurationMs=3600000", ""),
        ("ttlDurationMs=3600000", "ttlDurationMs=7200000"),
        ('"v long")', '"v long", ttlDurationMs=3600000)'),
        ('getListState("items", "v long")', 'getListState("others", "v long")'),
        ("max(one[0]", "min(one[0]"),
    ),
)
