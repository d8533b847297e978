"""What a plan's text and JSON do not hold: options of tables, values for functions, orders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f
from streams import JsonStreams

from floodmark.checkpoint.plan.tree import PlanTree
from floodmark.checkpoint.plan.tree_json import tree_from_json, tree_to_json
from floodmark.engine.code.plan import read_tree
from floodmark.rules.restarts.differences import DifferenceKind, differences, untold

pytestmark = pytest.mark.spark
SCHEMA = "k STRING, g STRING, v LONG, w LONG, at TIMESTAMP"
Query = Callable[["Streams"], Any]


class Streams(JsonStreams):
    schema = SCHEMA

    def looked_up(self, table: Any) -> Any:
        return self().join(table, f.expr("k = k2")).groupBy("k").agg(f.sum("u"))

    def joined(self, condition: str = "k = k2 AND g = g2", where: str = "true") -> Any:
        right = self("r").selectExpr("k AS k2", "g AS g2", "w AS w2")
        return self().join(right, f.expr(condition)).where(where)

    def nested(self, *columns: str, left: str = "r") -> Any:
        """A join of streams whose left side has a struct, of which these are used."""
        r = f.from_json(
            "g",
            "a LONG, b LONG, c STRUCT<d: LONG, e: LONG>, l ARRAY<STRUCT<m: LONG, n: LONG>>, "
            "n MAP<STRING, STRUCT<x: LONG, y: LONG>>",
        )
        mine = self().select("k", r.alias("r")).selectExpr("k", left)
        right = self("r").selectExpr("k AS k2", "v AS v2")
        return mine.join(right, f.expr("k = k2")).selectExpr("v2", *columns)

    def database(self, name: str) -> Any:
        query = "(SELECT CAST('a' AS VARCHAR(9)) k2, 1 u FROM sysibm.sysdummy1) t"
        read = self.spark.read.format("jdbc").option("dbtable", query)
        read = read.option("driver", "org.apache.derby.jdbc.EmbeddedDriver")
        return read.option("url", f"jdbc:derby:memory:{name};create=true").load()

    def source_of_mine(self, step: int, **options: Any) -> Any:
        self.spark.dataSource.register(_source(step))
        return self.spark.read.format("of_mine").options(**options).load()

    def stream_of_mine(self, step: int) -> Any:
        self.spark.dataSource.register(_source(step))
        return self.spark.readStream.format("of_mine").load()

    def copied(self) -> Any:
        return self().withColumn("t", f.col("at")).withWatermark("at", "1 hour")

    def delta(self, **options: Any) -> Any:
        path = str(self.folder / "delta")
        if not (self.folder / "delta").exists():
            for _ in range(2):
                rows = self.spark.createDataFrame([("a", 7)], "k2 STRING, u LONG")
                rows.write.format("delta").mode("append").save(path)
        return self.spark.read.format("delta").options(**options).load(path)

    def computed(self, step: int) -> Any:
        rows = self.spark.sparkContext.parallelize([("a", 7)]).map(lambda r: (r[0], r[1] + step))
        return self.spark.createDataFrame(rows, "k2 STRING, u LONG")

    def made_by_a_job(self, step: int) -> Any:
        rows = self.spark.range(1).rdd.map(lambda row: ("a", row.id + step))
        return self.spark.createDataFrame(rows, "k2 STRING, u LONG")


def _source(step: int) -> type:
    from pyspark.sql.datasource import DataSource, DataSourceReader, SimpleDataSourceStreamReader

    class Reader(DataSourceReader):
        def read(self, partition: Any) -> Any:
            yield ("a", step)

    class StreamReader(SimpleDataSourceStreamReader):
        def initialOffset(self) -> Any:  # noqa: N802
            return {"n": 0}

        def read(self, start: Any) -> Any:
            return iter([("a", step)]), start

        def readBetweenOffsets(self, start: Any, end: Any) -> Any:  # noqa: N802
            return iter([("a", step)])

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "of_mine"

        def schema(self) -> str:
            return "k2 STRING, u LONG"

        def reader(self, schema: Any) -> Any:
            return Reader()

        def simpleStreamReader(self, schema: Any) -> Any:  # noqa: N802
            return StreamReader()

    return Source


def tree(frame: Any) -> PlanTree:
    return read_tree(frame.sparkSession, frame._jdf.queryExecution().analyzed())


@pytest.fixture
def streams(spark: Any, tmp_path: Path) -> Streams:
    return Streams(spark.newSession(), tmp_path)


def _less(a, b):  # type: ignore[no-untyped-def]  # hints make Spark guess
    return a - b


def _turned(b, a):  # type: ignore[no-untyped-def]
    return b - a


def _named(function: Any) -> Query:
    return lambda s: s().groupBy(f.udf(function, "long")(a=f.col("v"), b=f.col("w"))).count()


def _broadcast(value: int) -> Query:
    def build(s: Streams) -> Any:
        held = s.spark.sparkContext.broadcast({"a": value})
        return s().groupBy(f.udf(lambda key: held.value.get(key, 0), "long")("k")).count()

    return build


OF_EVENT_TIME: dict[str, Callable[[Any, str], Any]] = {
    "windows": lambda rows, time: rows.groupBy(f.window(time, "10 minutes")).count(),
    "sliding windows": lambda rows, time: (
        rows.groupBy(f.window(time, "9 minutes", "3 minutes")).count().select("count")
    ),
    "sessions": lambda rows, time: rows.groupBy(f.session_window(time, "5 minutes")).count(),
    "a key": lambda rows, time: rows.groupBy(time).count(),
    "a deduplication": lambda rows, time: rows.dropDuplicates(["k", time]),
    "a join": lambda rows, time: rows.join(
        rows.selectExpr("k AS k2", "at AS at2"), f.expr(f"k = k2 AND {time} > at2")
    ),
}

# name: old, new, and the kind of the difference that reaches a state
CHANGED: dict[str, tuple[Query, Query, DifferenceKind]] = {
    "the database of a table": (
        lambda s: s.looked_up(s.database("first")),
        lambda s: s.looked_up(s.database("second")),
        DifferenceKind.ROWS,
    ),
    "an option of a connector's table": (
        lambda s: s.looked_up(s.source_of_mine(1, region="north")),
        lambda s: s.looked_up(s.source_of_mine(1, region="south")),
        DifferenceKind.ROWS,
    ),
    "the code of a source in Python": (
        lambda s: s.looked_up(s.source_of_mine(1)),
        lambda s: s.looked_up(s.source_of_mine(2)),
        DifferenceKind.ROWS,
    ),
    "the version of a Delta table": (
        lambda s: s.looked_up(s.delta(versionAsOf=0)),
        lambda s: s.looked_up(s.delta(versionAsOf=1)),
        DifferenceKind.ROWS,
    ),
    "a Delta table of one version": (
        lambda s: s.looked_up(s.delta()),
        lambda s: s.looked_up(s.delta(versionAsOf=1)),
        DifferenceKind.ROWS,
    ),
    "a function that makes rows of rows": (
        lambda s: s.looked_up(s.computed(1)),
        lambda s: s.looked_up(s.computed(2)),
        DifferenceKind.ROWS,
    ),
    "parameters that change places with their names": (
        _named(_less),
        _named(_turned),
        DifferenceKind.KEYS,
    ),
    "a broadcast value": (_broadcast(1), _broadcast(2), DifferenceKind.KEYS),
    "the order of a join's keys": (
        lambda s: s.joined("k = k2 AND g = g2"),
        lambda s: s.joined("g = g2 AND k = k2"),
        DifferenceKind.JOIN_CONDITION,
    ),
    "a filter that Spark moves below a join": (
        lambda s: s.joined(),
        lambda s: s.joined(where="v > 1"),
        DifferenceKind.FILTER,
    ),
    "a filter that Spark moves below an aggregation": (
        lambda s: s().groupBy("k").count(),
        lambda s: s().groupBy("k").count().where("k = 'a'"),
        DifferenceKind.FILTER,
    ),
    "the code of a streaming source in Python": (
        lambda s: s.stream_of_mine(1).groupBy("k2").count(),
        lambda s: s.stream_of_mine(2).groupBy("k2").count(),
        DifferenceKind.ROWS,
    ),
    **{
        f"a copy of the watermark's column in {name}": (
            lambda s, of=of: of(s.copied(), "at"),
            lambda s, of=of: of(s.copied(), "t"),
            DifferenceKind.ROWS,
        )
        for name, of in OF_EVENT_TIME.items()
    },
    **{
        f"the state of a join, which keeps {after} and not {before}": (
            lambda s, before=before: s.nested(*before.split()),
            lambda s, after=after: s.nested(*after.split()),
            DifferenceKind.JOIN_COLUMNS,
        )
        for before, after in [
            ("r.a", "r.b"),
            ("r.a", "r.a r.b"),
            ("r.a", "r"),
            ("r.c.d", "r.c.e"),
            ("r.c", "r.l.m"),
            ("r.a r.b", "r.b r.a"),
            ("r.n[concat('a','b')].x", "r.n[concat('a','c')].x"),
        ]
    },
    **{
        f"the state of a join after {left}, which keeps {after} and not {before}": (
            lambda s, before=before, left=left: s.nested(before, left=left),
            lambda s, after=after, left=left: s.nested(after, left=left),
            DifferenceKind.JOIN_COLUMNS,
        )
        for left, before, after in [
            ("explode(r.l) AS i", "i.m", "i.n"),
            ("struct(r.a, r.b) AS s", "s.a", "s.b"),
        ]
    },
    "a watermark above a dedup": (
        lambda s: s().withWatermark("at", "1 hour").dropDuplicates(["k", "at"]),
        lambda s: s().dropDuplicates(["k", "at"]).withWatermark("at", "1 hour"),
        DifferenceKind.ROWS,
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_is_seen(streams: Streams, name: str) -> None:
    old, new, kind = CHANGED[name]
    before = tree(old(streams))
    assert differences(before, tree(old(streams))) == ()
    found = differences(tree_from_json(tree_to_json(before)) or before, tree(new(streams)))
    assert kind in [one.kind for one in found if one.feeds is not None]


@pytest.mark.parametrize("name", OF_EVENT_TIME)
def test_a_copy_that_carries_the_watermark_is_the_same(streams: Streams, name: str) -> None:
    query = OF_EVENT_TIME[name]
    marked = streams().withWatermark("at", "1 hour").withColumn("t", f.col("at"))
    assert differences(tree(query(marked, "at")), tree(query(marked, "t"))) == ()


def test_fields_that_a_join_keeps_are_the_same_under_other_names(streams: Streams) -> None:
    before = tree(streams.nested("r.a", "r.c.d"))
    renamed = streams.nested("r", "v2").selectExpr("v2", "r AS p").selectExpr("v2", "p.a", "p.c.d")
    assert differences(before, tree(renamed)) == ()
    # An aggregation uses fields, too.
    sums = (streams.nested("r").groupBy("v2").agg(f.sum(one)) for one in ("r.a", "r.b"))
    found = [one.kind for one in differences(*map(tree, sums))]
    assert found == [DifferenceKind.FUNCTIONS, DifferenceKind.JOIN_COLUMNS]
    # The state has the whole column: which of its fields the sink receives is above the state.
    whole = (tree(streams.nested("r", one)) for one in ("r.a", "r.b"))
    assert {one.feeds for one in differences(*whole)} == {None}


def test_a_filter_on_results_reaches_no_state(streams: Streams) -> None:
    before = tree(streams().groupBy("k").count())
    (found,) = differences(before, tree(streams().groupBy("k").count().where("count > 1")))
    assert (found.kind, found.feeds) == (DifferenceKind.FILTER, None)


def test_rows_that_a_job_makes_cannot_be_compared(streams: Streams) -> None:
    before, after = (tree(streams.looked_up(streams.made_by_a_job(step))) for step in (1, 2))
    found = untold(before, tree_from_json(tree_to_json(after)) or after)
    assert found is not None
    assert found.kind is DifferenceKind.ROWS
    assert "rows that a job makes" in found.what
    assert untold(*[tree(streams().groupBy("k").count())] * 2) is None


def test_a_delta_table_without_a_version_may_grow(streams: Streams) -> None:
    before = tree(streams.looked_up(streams.delta()))
    more = streams.spark.createDataFrame([("b", 7)], "k2 STRING, u LONG")
    more.write.format("delta").mode("append").save(str(streams.folder / "delta"))
    assert differences(before, tree(streams.looked_up(streams.delta()))) == ()
