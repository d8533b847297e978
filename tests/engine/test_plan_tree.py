"""Plans of real code, compared as trees: what means the same is equal, all else is seen.

No stream is run for it: Spark analyses each query, and the trees are compared. What Spark
then computes with such changes is the business of tests/compatibility.
"""

from __future__ import annotations

import copy
import json
import math
import re
import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f
from streams import JsonStreams

from floodmark.checkpoint.plan.tree import PlanTree
from floodmark.checkpoint.plan.tree_json import tree_from_json, tree_to_json
from floodmark.checkpoint.start_note import packed_tree, unpacked_tree
from floodmark.engine.code.digests.python_code import function_digest
from floodmark.engine.code.plan import read_tree
from floodmark.rules.restarts.differences import DifferenceKind, differences

pytestmark = pytest.mark.spark

SCHEMA = "k STRING, v LONG, w LONG, at TIMESTAMP, xs ARRAY<STRING>, ys ARRAY<STRING>, text STRING"
Query = Callable[["Streams"], Any]


class Streams(JsonStreams):
    schema = SCHEMA

    def late(self, sub: str = "in", delay: str = "10 minutes") -> Any:
        return self(sub).withWatermark("at", delay)

    def static(self, rows: tuple[tuple[str, int], ...] = (("a", 7),)) -> Any:
        return self.spark.createDataFrame(list(rows), "k2 STRING, u LONG")

    def database(self, key: str) -> Any:
        query = f"(SELECT CAST('{key}' AS VARCHAR(9)) k2, 1 u FROM sysibm.sysdummy1) t"
        read = self.spark.read.format("jdbc").option("dbtable", query)
        read = read.option("driver", "org.apache.derby.jdbc.EmbeddedDriver")
        return read.option("url", "jdbc:derby:memory:looked_up;create=true").load()

    def sql(self, query: str) -> Any:
        self().createOrReplaceTempView("s")
        self.static().createOrReplaceTempView("looked_up")
        return self.spark.sql(query)

    def table(self, schema: str, **options: Any) -> Any:
        (self.folder / "table").mkdir(exist_ok=True)
        return self.spark.read.schema(schema).options(**options).csv(str(self.folder / "table"))


def tree(frame: Any) -> PlanTree:
    return read_tree(frame.sparkSession, frame._jdf.queryExecution().analyzed())


@pytest.fixture
def streams(spark: Any, tmp_path: Path) -> Streams:
    return Streams(spark.newSession(), tmp_path)


def _window(length: str, slide: str | None = None, start: str | None = None) -> Query:
    def build(s: Streams) -> Any:
        made = f.window("at", length, slide, start)
        return s.late().groupBy(made).count().select("window.start", "window.end", "count")

    return build


def _sums(order: list[int]) -> Query:
    columns = ", ".join(f"c{at} LONG" for at in range(40))
    return lambda s: (
        s(schema=f"k STRING, {columns}")
        .groupBy("k")
        .agg(*[f.sum(f"c{at}").alias(f"s{n}") for n, at in enumerate(order)])
    )


def _joined(
    s: Streams,
    kind: str = "inner",
    hours: int = 1,
    key: str = "k",
    payload: str = "w",
    times: str = "",
) -> Any:
    left = s.late("l").selectExpr(f"{key} AS a", f"{payload} AS p", "at AS there")
    right = s.late("r").selectExpr(f"{key} AS b", "v AS q", "at AS then")
    times = times or f"then BETWEEN there AND there + interval {hours} hours"
    condition = f"a = b AND {times}"
    return left.join(right, f.expr(condition), kind).select("a", "p", "q")


def _self_joined(s: Streams, left: str, right: str) -> Any:
    """One frame on both sides: Spark gives its columns the same numbers."""
    events = s.late()
    one = events.selectExpr(left, "at AS there")
    other = events.selectExpr(right, "at AS then")
    return one.join(other, f.expr("a = b AND there = then"))


def _static(s: Streams, kind: str = "inner", condition: str = "k = k2") -> Any:
    return s().join(s.static(), f.expr(condition), kind).groupBy("k").agg(f.sum("u"))


def _looked_up(s: Streams, table: Any, schema: str = SCHEMA) -> Any:
    return s(schema=schema).join(table, f.expr("k = k2")).groupBy("k").agg(f.sum("u"))


def _bucket(suffix: str) -> Query:
    def build(s: Streams) -> Any:
        @f.udf("string")
        def bucket(key):  # type: ignore[no-untyped-def]  # hints make Spark guess
            return key + suffix

        return s().groupBy(bucket("k").alias("b")).count()

    return build


def _groups(step: int) -> Query:
    def build(s: Streams) -> Any:
        def count(key: Any, frames: Any, state: Any) -> Any:
            state.update((step,))
            yield from frames

        return (
            s()
            .select("k", "v")
            .groupBy("k")
            .applyInPandasWithState(count, "k string, v long", "n long", "update", "NoTimeout")
        )

    return build


def _branches(first: str, second: str, unique: bool = False) -> Query:
    def build(s: Streams) -> Any:
        both = [s().where(one).select("k", "v") for one in (first, second)]
        if unique:
            both = [one.dropDuplicates(["k"]) for one in both]
            return both[0].union(both[1])
        return both[0].union(both[1]).groupBy("k").count()

    return build


_TWICE = "WITH t AS (SELECT k, v x FROM s) SELECT k, sum(x) FROM (SELECT k, x FROM t UNION ALL"
_PAIR = "FROM VALUES (1, 5) a(x, c) JOIN VALUES (1, 6) b(x, c) ON a.x = b.x"


def _mapped(s: Streams, *columns: str) -> Any:
    made = s().selectExpr(*columns).mapInPandas(_as_they_are, "v LONG, w LONG")
    return made.groupBy("v").count()


def _as_they_are(frames: Any) -> Any:
    yield from frames


def _first_name(key):  # type: ignore[no-untyped-def]
    return key + "1"


def _second_name(text):  # type: ignore[no-untyped-def]
    return text + "1"


# name: old, new, and the kind of the difference that reaches a state
CHANGED: dict[str, tuple[Query, Query, DifferenceKind]] = {
    "slide": (
        _window("10 minutes", "5 minutes"),
        _window("10 minutes", "2 minutes"),
        DifferenceKind.KEYS,
    ),
    "window length": (_window("10 minutes"), _window("20 minutes"), DifferenceKind.KEYS),
    "window start": (
        _window("10 minutes"),
        _window("10 minutes", None, "1 minute"),
        DifferenceKind.KEYS,
    ),
    "session gap": (
        lambda s: s.late().groupBy(f.session_window("at", "10 seconds")).count(),
        lambda s: s.late().groupBy(f.session_window("at", "200 seconds")).count(),
        DifferenceKind.KEYS,
    ),
    "rollup to cube": (
        lambda s: s().rollup("k", "w").agg(f.sum("v")),
        lambda s: s().cube("k", "w").agg(f.sum("v")),
        DifferenceKind.ROWS,
    ),
    "explode of another column": (
        lambda s: s().select(f.explode("xs").alias("i")).groupBy("i").count(),
        lambda s: s().select(f.explode("ys").alias("i")).groupBy("i").count(),
        DifferenceKind.ROWS,
    ),
    "explode under a dedup": (
        lambda s: s().select(f.explode("xs").alias("i")).dropDuplicates(["i"]),
        lambda s: s().select(f.explode("ys").alias("i")).dropDuplicates(["i"]),
        DifferenceKind.ROWS,
    ),
    "explode to explode_outer": (
        lambda s: s().select(f.explode("xs").alias("i")).groupBy("i").count(),
        lambda s: s().select(f.explode_outer("xs").alias("i")).groupBy("i").count(),
        DifferenceKind.ROWS,
    ),
    "stack": (
        lambda s: s().selectExpr("stack(2, 'v', v, 'w', w) AS (n, x)").groupBy("n").agg(f.sum("x")),
        lambda s: s().selectExpr("stack(2, 'v', w, 'w', v) AS (n, x)").groupBy("n").agg(f.sum("x")),
        DifferenceKind.ROWS,
    ),
    "unpivot": (
        lambda s: s().unpivot(["k"], ["v"], "n", "x").groupBy("n").agg(f.sum("x")),
        lambda s: s().unpivot(["k"], ["w"], "n", "x").groupBy("n").agg(f.sum("x")),
        DifferenceKind.ROWS,
    ),
    "json_tuple field": (
        lambda s: s().select(f.json_tuple("text", "a")).groupBy("c0").count(),
        lambda s: s().select(f.json_tuple("text", "b")).groupBy("c0").count(),
        DifferenceKind.ROWS,
    ),
    "static join's type": (_static, lambda s: _static(s, "left"), DifferenceKind.ROWS),
    "static join's condition": (
        _static,
        lambda s: _static(s, condition="k = k2 AND v > 5"),
        DifferenceKind.ROWS,
    ),
    "the other side's column": (
        lambda s: (
            s()
            .join(s.static().withColumnRenamed("u", "v"), f.expr("k = k2"))
            .agg(f.sum(s.spark.range(1).count() and f.expr("k2").isNotNull().cast("long")))
        ),
        lambda s: (
            s()
            .join(s.static().withColumnRenamed("u", "v"), f.expr("k = k2"))
            .agg(f.sum(f.expr("k").isNotNull().cast("long")))
        ),
        DifferenceKind.FUNCTIONS,
    ),
    "ignorenulls": (
        lambda s: s().groupBy("k").agg(f.first("v")),
        lambda s: s().groupBy("k").agg(f.first("v", ignorenulls=True)),
        DifferenceKind.FUNCTIONS,
    ),
    "from_json's date format": (
        lambda s: (
            s()
            .select(f.from_json("text", "d DATE", {"dateFormat": "dd/MM/yyyy"}).alias("r"))
            .groupBy("r.d")
            .count()
        ),
        lambda s: (
            s()
            .select(f.from_json("text", "d DATE", {"dateFormat": "MM/dd/yyyy"}).alias("r"))
            .groupBy("r.d")
            .count()
        ),
        DifferenceKind.KEYS,
    ),
    "from_csv's columns": (
        lambda s: s().select(f.from_csv("text", "a LONG, b LONG").alias("r")).agg(f.sum("r.a")),
        lambda s: s().select(f.from_csv("text", "b LONG, a LONG").alias("r")).agg(f.sum("r.a")),
        DifferenceKind.FUNCTIONS,
    ),
    "union by other positions": (
        lambda s: s().select("v", "w").union(s("r").select("v", "w")).agg(f.sum("v"), f.sum("w")),
        lambda s: s().select("v", "w").union(s("r").select("w", "v")).agg(f.sum("v"), f.sum("w")),
        DifferenceKind.ROWS,
    ),
    "branches swapped over a dedup": (
        _branches("v > 1", "v < 1", unique=True),
        _branches("v < 1", "v > 1", unique=True),
        DifferenceKind.FILTER,
    ),
    "filters swapped": (
        _branches("v > 1", "w > 1"),
        _branches("w > 1", "v > 1"),
        DifferenceKind.FILTER,
    ),
    "a filter moved below a dedup": (
        lambda s: s().dropDuplicates(["k"]).where("v > 1"),
        lambda s: s().where("v > 1").dropDuplicates(["k"]),
        DifferenceKind.FILTER,
    ),
    "a filter added": (
        lambda s: s().groupBy("k").count(),
        lambda s: s().where("v > 1").groupBy("k").count(),
        DifferenceKind.FILTER,
    ),
    "a branch of a case": (
        lambda s: s().groupBy(f.when(f.col("v") > 1, "a").when(f.col("w") > 1, "b")).count(),
        lambda s: s().groupBy(f.when(f.col("v") > 1, "a").when(f.col("w") > 2, "b")).count(),
        DifferenceKind.KEYS,
    ),
    "an input redefined": (
        lambda s: s().withColumn("x", f.col("v")).groupBy("k").agg(f.sum("x")),
        lambda s: s().withColumn("x", f.col("v") * 100).groupBy("k").agg(f.sum("x")),
        DifferenceKind.FUNCTIONS,
    ),
    "a name that looks like an id": (
        lambda s: s().withColumn("x#1", f.col("v")).groupBy("k").agg(f.sum("`x#1`")),
        lambda s: s().withColumn("x#1", f.col("w")).groupBy("k").agg(f.sum("`x#1`")),
        DifferenceKind.FUNCTIONS,
    ),
    "a key redefined": (
        lambda s: s().withColumn("g", f.col("k")).groupBy("g").count(),
        lambda s: s().withColumn("g", f.upper("k")).groupBy("g").count(),
        DifferenceKind.KEYS,
    ),
    "a dedup key redefined": (
        lambda s: s().withColumn("g", f.col("k")).dropDuplicates(["g"]),
        lambda s: s().withColumn("g", f.upper("k")).dropDuplicates(["g"]),
        DifferenceKind.KEYS,
    ),
    "the 39th of 40 sums": (
        _sums([*range(40)]),
        _sums([*range(38), 39, 38]),
        DifferenceKind.FUNCTIONS,
    ),
    "try_sum": (
        lambda s: s().groupBy("k").agg(f.expr("sum(v)")),
        lambda s: s().groupBy("k").agg(f.expr("try_sum(v)")),
        DifferenceKind.ROWS,
    ),
    "a join's type": (_joined, lambda s: _joined(s, "leftOuter"), DifferenceKind.JOIN_TYPE),
    "a join's range": (_joined, lambda s: _joined(s, hours=2), DifferenceKind.JOIN_CONDITION),
    "a join key redefined on both sides": (
        _joined,
        lambda s: _joined(s, key="upper(k)"),
        DifferenceKind.JOIN_CONDITION,
    ),
    "a column of a join redefined": (
        _joined,
        lambda s: _joined(s, payload="w * 100"),
        DifferenceKind.JOIN_COLUMNS,
    ),
    "a side of a self-join": (
        lambda s: _self_joined(s, "k AS a", "k AS b"),
        lambda s: _self_joined(s, "k AS a", "text AS b"),
        DifferenceKind.JOIN_CONDITION,
    ),
    "the body of a function": (_bucket("1"), _bucket("2"), DifferenceKind.KEYS),
    "the body of a function with state": (_groups(1), _groups(2), DifferenceKind.CODE),
    "an operator more": (
        lambda s: s().groupBy("k").count(),
        lambda s: s().dropDuplicates(["k"]).groupBy("k").count(),
        DifferenceKind.OPERATORS,
    ),
    "a row of a table made in the code": (
        lambda s: _looked_up(s, s.static((("a", 7), ("b", 8)))),
        lambda s: _looked_up(s, s.static((("a", 7), ("c", 8)))),
        DifferenceKind.ROWS,
    ),
    "columns of a table made in the code": (
        lambda s: _looked_up(s, s.spark.createDataFrame([("a", "b")], "k2 STRING, u STRING")),
        lambda s: _looked_up(s, s.spark.createDataFrame([("a", "b")], "u STRING, k2 STRING")),
        DifferenceKind.ROWS,
    ),
    "columns of a table of CSV": (
        lambda s: _looked_up(s, s.table("k2 STRING, u LONG, v2 LONG")),
        lambda s: _looked_up(s, s.table("k2 STRING, v2 LONG, u LONG")),
        DifferenceKind.ROWS,
    ),
    "an option of a table of CSV": (
        lambda s: _looked_up(s, s.table("k2 STRING, u LONG")),
        lambda s: _looked_up(s, s.table("k2 STRING, u LONG", header=True)),
        DifferenceKind.ROWS,
    ),
    "a row of a table in SQL": (
        lambda s: _looked_up(s, s.spark.sql("SELECT * FROM VALUES ('a', 7L) AS t(k2, u)")),
        lambda s: _looked_up(s, s.spark.sql("SELECT * FROM VALUES ('a', 8L) AS t(k2, u)")),
        DifferenceKind.ROWS,
    ),
    "a table expression in SQL": (
        lambda s: s.sql("WITH t AS (SELECT k, v x FROM s) SELECT k, sum(x) FROM t GROUP BY k"),
        lambda s: s.sql("WITH t AS (SELECT k, w x FROM s) SELECT k, sum(x) FROM t GROUP BY k"),
        DifferenceKind.FUNCTIONS,
    ),
    "a filter in a table expression": (
        lambda s: s.sql("WITH t AS (SELECT k FROM s WHERE v > 1) SELECT DISTINCT k FROM t"),
        lambda s: s.sql("WITH t AS (SELECT k FROM s WHERE v > 2) SELECT DISTINCT k FROM t"),
        DifferenceKind.FILTER,
    ),
    "one of two uses of a table expression": (
        lambda s: s.sql(f"{_TWICE} SELECT k, x FROM t) GROUP BY k"),
        lambda s: s.sql(f"{_TWICE} SELECT k, x + 1 FROM t) GROUP BY k"),
        DifferenceKind.ROWS,
    ),
    "the rows of a subquery": (
        lambda s: s().where("v > (SELECT max(c) FROM VALUES (1) t(c))").groupBy("k").count(),
        lambda s: s().where("v > (SELECT max(c) FROM VALUES (2) t(c))").groupBy("k").count(),
        DifferenceKind.FILTER,
    ),
    "the table that a subquery's column is of": (
        lambda s: s().where(f"v > (SELECT max(a.c) {_PAIR})").groupBy("k").count(),
        lambda s: s().where(f"v > (SELECT max(b.c) {_PAIR})").groupBy("k").count(),
        DifferenceKind.FILTER,
    ),
    "try_cast at another place": (
        lambda s: s().groupBy(f.expr("try_cast(k AS INT) + cast(text AS INT)")).count(),
        lambda s: s().groupBy(f.expr("cast(k AS INT) + try_cast(text AS INT)")).count(),
        DifferenceKind.KEYS,
    ),
    "the collation of a field": (
        lambda s: s(schema="k STRUCT<a: STRING>").groupBy("k").count(),
        lambda s: s(schema="k STRUCT<a: STRING COLLATE UTF8_LCASE>").groupBy("k").count(),
        DifferenceKind.KEYS,
    ),
    "the variables of a lambda": (
        lambda s: s().groupBy(f.expr("zip_with(xs, ys, (x, y) -> concat(x, y))")).count(),
        lambda s: s().groupBy(f.expr("zip_with(xs, ys, (x, y) -> concat(y, x))")).count(),
        DifferenceKind.KEYS,
    ),
    "a filter on event time below the watermark": (
        lambda s: s().where("at < now()").withWatermark("at", "1 hour").groupBy("at").count(),
        lambda s: s().withWatermark("at", "1 hour").where("at < now()").groupBy("at").count(),
        DifferenceKind.FILTER,
    ),
    "names of columns for a function": (
        lambda s: _mapped(s, "v", "w"),
        lambda s: _mapped(s, "v AS w", "w AS v"),
        DifferenceKind.ROWS,
    ),
    "a table of a database": (
        lambda s: _looked_up(s, s.database("a")),
        lambda s: _looked_up(s, s.database("b")),
        DifferenceKind.ROWS,
    ),
    "a text": (
        lambda s: s().groupBy(f.expr("k = 'a'")).count(),
        lambda s: s().groupBy(f.expr("k = 'b'")).count(),
        DifferenceKind.KEYS,
    ),
}

SAME: dict[str, tuple[Query, Query]] = {
    "a column more of a source, beside a table in SQL": (
        lambda s: _looked_up(s, s.spark.sql("SELECT * FROM VALUES ('a', 7L) AS t(k2, u)")),
        lambda s: _looked_up(
            s,
            s.spark.sql("SELECT * FROM VALUES ('a', 7L) AS t(k2, u)"),
            f"{SCHEMA}, more STRING",
        ),
    ),
    "select in two steps": (
        lambda s: s().select("k", (f.col("v") * 2).alias("x")).groupBy("k").agg(f.sum("x")),
        lambda s: s().withColumn("y", f.col("v") * 2).select("k", "y").groupBy("k").agg(f.sum("y")),
    ),
    "filters in another order": (
        lambda s: s().where("v > 1 AND w < 2").groupBy("k").count(),
        lambda s: s().where("w < 2").where("1 < v").groupBy("k").count(),
    ),
    "a filter that is always true": (
        lambda s: s().groupBy("k").count(),
        lambda s: s().where("true").groupBy("k").count(),
    ),
    "a column that nobody uses": (
        lambda s: s().groupBy("k").count(),
        lambda s: s().withColumn("unused", f.col("v") + 1).groupBy("k").count(),
    ),
    "a key with another name": (
        lambda s: s().groupBy(f.col("k").alias("a")).count(),
        lambda s: s().withColumnRenamed("k", "b").groupBy("b").count(),
    ),
    "an alias of a table": (
        lambda s: s().alias("t").groupBy("t.k").count(),
        lambda s: s().groupBy("k").count(),
    ),
    "repartitioned": (
        lambda s: s().groupBy("k").count(),
        lambda s: s().repartition(3).groupBy("k").count(),
    ),
    "sides of a sum": (
        lambda s: s().groupBy("k").agg(f.sum(f.col("v") + f.col("w"))),
        lambda s: s().groupBy("k").agg(f.sum(f.col("w") + f.col("v"))),
    ),
    "a table expression for a subselect": (
        lambda s: s.sql("WITH t AS (SELECT k, v x FROM s) SELECT k, sum(x) FROM t GROUP BY k"),
        lambda s: s.sql("SELECT k, sum(x) FROM (SELECT k, v x FROM s) GROUP BY k"),
    ),
    "names of a lambda's variables": (
        lambda s: s().groupBy(f.transform("xs", lambda x: x == "a")).count(),
        lambda s: s().groupBy(f.expr("transform(xs, y -> y = 'a')")).count(),
    ),
    "a subquery over a view made again": (
        lambda s: s.sql("SELECT DISTINCT k FROM s WHERE k IN (SELECT k2 FROM looked_up)"),
        lambda s: s.sql("SELECT DISTINCT k FROM s WHERE k IN (SELECT k2 FROM looked_up)"),
    ),
    "random numbers of Python's functions": (
        lambda s: s().groupBy((f.rand() * 10).cast("int"), f.uuid()).count(),
        lambda s: s().groupBy((f.rand() * 10).cast("int"), f.uuid()).count(),
    ),
    "a renamed column under a window": (
        lambda s: s.late().groupBy(f.window("at", "10 minutes")).count(),
        lambda s: (
            s.late()
            .withColumnRenamed("at", "ts")
            .alias("x")
            .groupBy(f.window("ts", "10 minutes"))
            .count()
        ),
    ),
    "a renamed column in a case": (
        lambda s: s().groupBy(f.when(f.col("v") > 1, f.col("w"))).count(),
        lambda s: (
            s()
            .withColumnRenamed("v", "u")
            .alias("x")
            .groupBy(f.when(f.col("u") > 1, f.col("w")))
            .count()
        ),
    ),
    "a sample": (
        lambda s: s().sample(0.5).groupBy("k").count(),
        lambda s: s().sample(0.5).groupBy("k").count(),
    ),
    "a seed that Spark draws": (
        lambda s: s().where("rand() < 0.5").groupBy("k").count(),
        lambda s: s().where("rand() < 0.5").groupBy("k").count(),
    ),
    "bytes": (
        lambda s: s().groupBy(f.expr("cast(k AS BINARY) = X'01'")).count(),
        lambda s: s().groupBy(f.expr("cast(k AS BINARY) = X'01'")).count(),
    ),
    "a function with another name": (
        lambda s: s().groupBy(f.udf(_first_name, "string")("k")).count(),
        lambda s: s().groupBy(f.udf(_second_name, "string")("k")).count(),
    ),
    "BETWEEN": (
        lambda s: s().where("v BETWEEN 1 AND 2").groupBy("k").count(),
        lambda s: s().where(f.col("v") >= 1).where("v <= 2").groupBy("k").count(),
    ),
    "BETWEEN in a join": (
        lambda s: _joined(s),
        lambda s: _joined(s, times="there <= then AND then <= there + interval 1 hours"),
    ),
    "capitals of a field": (
        lambda s: s(schema="r STRUCT<a: LONG>").groupBy("r.a").count(),
        lambda s: s(schema="r STRUCT<a: LONG>").groupBy("R.A").count(),
    ),
    "the values of an IN": (
        lambda s: s().where("k IN ('a', 'b', 'c')").groupBy("k").count(),
        lambda s: s().where(f.col("k").isin("c", "a", "b")).groupBy("k").count(),
    ),
    "SQL for code": (
        lambda s: s().where(f.col("v") > 1).groupBy("k").agg(f.sum("v").alias("x")),
        lambda s: s().where("v > 1").groupBy("k").agg(f.expr("sum(v) AS y")),
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_is_seen(streams: Streams, name: str) -> None:
    old, new, kind = CHANGED[name]
    before, after = tree(old(streams)), tree(new(streams))
    noted = unpacked_tree(packed_tree(before.hidden("salt")))
    assert noted is not None
    found = differences(noted, after)
    assert [one for one in found if one.feeds is not None and one.kind is kind], found
    assert differences(before, after)


@pytest.mark.parametrize("name", SAME)
def test_another_way_to_write_it_is_the_same(streams: Streams, name: str) -> None:
    old, new = SAME[name]
    found = differences(tree(old(streams)).hidden("salt"), tree(new(streams)))
    assert [one for one in found if one.feeds is not None] == []


@pytest.mark.parametrize("name", CHANGED)
def test_the_same_code_is_the_same(streams: Streams, name: str) -> None:
    """Built again, and through the JSON of a note."""
    for build in CHANGED[name][:2]:
        before = tree(build(streams)).hidden("salt")
        assert tree_from_json(json.loads(json.dumps(tree_to_json(before)))) == before
        assert differences(before, tree(build(streams))) == ()


def test_another_time_zone_is_another_key(spark: Any, tmp_path: Path) -> None:
    found = []
    for zone in ("UTC", "Asia/Tokyo"):
        session = spark.newSession()
        session.conf.set("spark.sql.session.timeZone", zone)
        found.append(tree(Streams(session, tmp_path)().groupBy(f.to_date("at")).count()))
    assert [one.kind for one in differences(*found)] == [DifferenceKind.KEYS]


def test_a_column_used_again_and_again_costs_no_more(streams: Streams) -> None:
    """Each step uses the one before twice: written out it would be 2 ** 40 columns."""
    frame = streams()
    for _ in range(40):
        frame = frame.withColumn("v", f.col("v") + f.col("v") * 2)
    found = tree(frame.groupBy("k").agg(f.sum("v")))
    assert len(json.dumps(tree_to_json(found))) < 100_000


def test_hundreds_of_steps_are_not_too_deep(streams: Streams) -> None:
    frame = streams()
    for _ in range(12):
        step = f.col("v")
        for _ in range(60):
            step = step + 1
        frame = frame.withColumn("v", step)
    found = tree(frame.groupBy("k").agg(f.sum("v"))).hidden("salt")
    assert unpacked_tree(packed_tree(found)) == found


def test_texts_of_the_code_are_not_kept(streams: Streams) -> None:
    secret = "kJ8-aes-key-0123"
    frame = (
        streams()
        .where(f.expr(f"text = '{secret}'"))
        .groupBy("k")
        .agg(f.count(f.expr(f"aes_decrypt(unbase64(text), '{secret}')")))
    )
    options = {"dateFormat": secret}
    frame = frame.select(f.from_json("k", "d DATE", options).alias("r"))
    frame = frame.groupBy(f.expr(f"concat(r.d, '{secret}')").alias("key")).count()
    kept = json.dumps(packed_tree(tree(frame).hidden("salt")))
    assert secret not in kept


def test_a_changed_variable_of_sql_is_named_with_its_values(streams: Streams) -> None:
    def declared(value: object, name: str = "lowest", before: int = 0) -> PlanTree:
        session = streams.spark
        session.sql(f"DECLARE OR REPLACE VARIABLE {name} = {before}")
        session.sql(f"SET VAR {name} = {value}")
        return tree(streams.sql(f"SELECT k, count(*) FROM s WHERE v > {name} GROUP BY k"))

    found = differences(declared(3).hidden("salt"), declared(5))
    assert "lowest := 5" in found[0].what
    assert "lowest := 3" in found[0].what
    # Neither its name nor its default is in a row.
    assert differences(declared(3), declared(3, "least", before=1)) == ()


def test_the_text_of_a_variable_of_sql_is_not_kept(streams: Streams) -> None:
    secret = "kJ8-aes-key-0123"
    trees = []
    for text in (secret, "another"):
        streams.spark.sql(f"DECLARE OR REPLACE VARIABLE word = '{text}'")
        trees.append(tree(streams.sql("SELECT k, count(*) FROM s WHERE k = word GROUP BY k")))
    kept = trees[0].hidden("salt")
    assert secret not in json.dumps(packed_tree(kept))
    (found,) = differences(kept, trees[1])
    assert "word := " in found.what
    assert secret not in found.what


_PLAIN = "def size(n, low=3):\n    if n is None:\n        return 'none'\n    return n + low\n"


def _function(text: str) -> Any:
    names: dict[str, Any] = {"__name__": "app"}
    exec(text, names)
    return names["size"]


@pytest.mark.parametrize(
    "text",
    [
        _PLAIN.replace("    if", '    """A docstring."""\n    if'),
        _PLAIN.replace("    if", "    # A comment.\n\n    if"),
        _PLAIN.replace("n is", "m is").replace("(n,", "(m,").replace("n + low", "m + low"),
    ],
)
def test_a_digest_is_of_what_a_function_does(text: str) -> None:
    assert function_digest(_function(text)) == function_digest(_function(_PLAIN))


@pytest.mark.parametrize(
    "text",
    [
        _PLAIN.replace("low=3", "low=4"),
        _PLAIN.replace("'none'", "'null'"),
        _PLAIN.replace("+", "-"),
        _PLAIN.replace("n + low", "low + n"),
        "LOW = 1\n" + _PLAIN.replace("n + low", "n + LOW"),
        "import math\n" + _PLAIN.replace("n + low", "math.floor(n)"),
    ],
)
def test_a_digest_differs_where_a_function_does_another_thing(text: str) -> None:
    assert function_digest(_function(text)) != function_digest(_function(_PLAIN))


@pytest.mark.parametrize(
    "text",
    [
        "def low(n):\n    return low.few[n]\nlow.few = {value}\n",
        "import types\nFEW = types.MappingProxyType({value})\ndef low(n):\n    return FEW[n]\n",
        "import functools\n@functools.lru_cache\ndef low(n):\n    return ({value})[n]\n",
        "import functools\n@functools.cache\ndef low(n):\n    return ({value})[n]\n",
        "import functools\ndef get(few, n):\n    return few[n]\n"
        "low = functools.partial(get, {value})\n",
        "class Kept:\n    @property\n    def few(self):\n        return {value}\n"
        "def low(n):\n    return Kept().few[n]\n",
        "import enum\nclass Kind(enum.Enum):\n    A = {value}\ndef low(n):\n    return Kind.A\n",
        "class Kept(str):\n    def few(self):\n        return {value}\n"
        "kept = Kept('a')\ndef low(n):\n    return kept.few()[n]\n",
        "CODE = compile('({value})[n]', '', 'eval')\ndef low(n):\n    return eval(CODE)\n",
        "class Kept:\n    def __init__(self, few):\n        self.few = few\n"
        "KEPT = {Kept({value})}\ndef low(n):\n    return next(iter(KEPT)).few[n]\n",
        "class Kept:\n    __few__ = {value}\ndef low(n):\n    return Kept().__few__[n]\n",
        "class Meta(type):\n    @property\n    def few(cls):\n        return {value}\n"
        "class Kept(metaclass=Meta):\n    pass\ndef low(n):\n    return Kept.few[n]\n",
    ],
)
def test_values_and_functions_behind_wrappers_are_in_a_digest(text: str) -> None:
    size = "def size(n):\n    return low(n)\n"
    one, same, other = (
        function_digest(_function(text.replace("{value}", value) + size))
        for value in ("{1: 2}", "{1: 2}", "{1: 3}")
    )
    assert one == same
    assert one != other


def test_a_value_that_a_function_uses_is_part_of_it() -> None:
    texts = [f"LOW = {low}\n" + _PLAIN.replace("n + low", "n + LOW") for low in (1, 2)]
    first, second = (function_digest(_function(one)) for one in texts)
    assert first != second


def test_both_sides_of_a_self_join_are_told_apart(streams: Streams) -> None:
    (join,) = tree(_self_joined(streams, "k AS a", "k AS b")).steps("Join")
    sources = {one.field("source") for part in join.role("condition") for one in part.walk()}
    assert sources - {None} == {"0", "1"}


LIMIT = 3
BOUND = 3
OTHER = 4
FEW = [1]
MANY = [1, 2]


def test_names_and_docstrings_are_not_in_a_digest() -> None:
    def one(n: int | None, low: str = "small") -> str | None:
        if n is None:
            return None
        return low if n < LIMIT else "big"

    first = function_digest(one)

    def one(number: int | None, little: str = "small") -> str | None:  # type: ignore[no-redef]
        """The name of a size."""
        if number is None:
            return None
        return little if number < BOUND else "big"

    assert function_digest(one) == first

    def one(number: int | None, little: str = "small") -> str | None:  # type: ignore[no-redef]
        if number is None:
            return None
        return little if number < OTHER else "big"

    assert function_digest(one) != first


def test_what_a_function_does_is_in_its_digest() -> None:
    def made(step: int) -> list[Any]:
        return [
            lambda a, b: a - b,
            lambda a, b: b - a,
            lambda a, b: a - b - step,
            lambda a, b: [c - step for c in (a, b)],
            lambda a, b: [c + step for c in (a, b)],
            lambda a, b: a.upper() + b,
            lambda a, b: a.lower() + b,
            lambda *a, b: a,
            lambda a, *, b: a,
            lambda a, b: FEW + MANY + FEW,
            lambda a, b: FEW + MANY + MANY,
        ]

    digests = [function_digest(one) for one in made(1)]
    assert len(set(digests)) == len(digests)
    assert [function_digest(one) for one in made(1)] == digests
    others = [function_digest(one) for one in made(2)]
    changed = [at for at, one in enumerate(others) if one != digests[at]]
    assert changed == [2, 3, 4]


class _Slotted:
    __slots__ = ("step",)

    def __init__(self, step: int) -> None:
        self.step = step


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (re.compile("a"), re.compile("b")),
        (math.floor, math.ceil),
        ({"a": 1, "ab": 2}, {"ab": 2, "a": 1}),
        (deque([1]), deque([2])),
        (defaultdict(int), defaultdict(list)),
        (range(3), range(4)),
        (Path("a"), Path("b")),
        ([1].__contains__, [2].__contains__),
        (property(lambda self: 1), property(lambda self: 2)),
        (_Slotted(1), _Slotted(2)),
    ],
)
def test_a_value_of_any_kind_is_part_of_a_function(one: Any, other: Any) -> None:
    def made(value: Any) -> str:
        return function_digest(lambda key: (value, key))

    assert made(one) != made(other)
    assert made(one) == made(copy.copy(one))


def test_what_a_function_uses_of_a_module_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = []
    for unit in (1, 1, 2):
        module = types.ModuleType("units_of_mine")
        exec(f"def size(n):\n    return n * {unit}\n", module.__dict__)
        monkeypatch.setitem(sys.modules, "units_of_mine", module)
        names: dict[str, Any] = {"__name__": "app"}
        exec("import units_of_mine\ndef size(n):\n    return units_of_mine.size(n)\n", names)
        digests.append(function_digest(names["size"]))
    assert digests[0] == digests[1] != digests[2]


def test_a_plan_of_an_unknown_form_is_not_called_the_same(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(nodes: Any, facts: Any) -> PlanTree:
        raise KeyError("projectList")

    monkeypatch.setattr("floodmark.engine.code.plan.read_plan", unknown)
    before, after = tree(streams().groupBy("k").count()), tree(streams().groupBy("w").count())
    assert [one.kind for one in differences(before, after)] == [DifferenceKind.ROWS]
    assert differences(before, tree(streams().groupBy("k").count())) == ()
