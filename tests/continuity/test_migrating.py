"""Functions over the rows, tables of state, and what is refused of them before anything is written.

Spark runs the functions; the scenarios of the matrix tell that good ones go on rightly.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import continuity_matrix
import pytest
from continuity_matrix import run, write_app, write_half
from scenarios import Scenario, transformed

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.cli.main import run as floodmark
from floodmark.errors import FloodmarkError

pytestmark = pytest.mark.spark

GO = Carrying(True, 0)
OLD = 'events.groupBy("k").agg(F.count("*").alias("n"))'
NEW = 'events.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("s"))'
COLLECTIONS = transformed("FewerCollections")
ONE = Scenario("aggregation", "for the functions", OLD, NEW)
GOOD = 'F.struct(F.col("value.count").alias("count"), F.lit(100).cast("long").alias("sum"))'


class Place:
    """An old checkpoint after the first half, and the new code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.old = folder / "input", folder / "old"
        self.old_app = write_app(folder / "old_app.py", OLD, ONE, self.source, self.old)
        self.app = write_app(folder / "app.py", NEW, ONE, self.source, folder / "new")
        write_half(self.source, 1)

    def migration(self, text: str) -> str:
        path = self.folder / "MIGRATION.py"
        path.write_text(f"from pyspark.sql import functions as F\n\n\n{text}\n")
        return str(path)


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place(tmp_path_factory.mktemp("migrating"))
    run(spark, made.old_app, made.old, noted=True)
    return made


@pytest.mark.parametrize(
    ("body", "words", "shown"),
    [
        ("return state.select('key')", "gives the columns key", "a key and a value"),
        ("return state", "value has the columns count", "sum BIGINT"),
        (
            f"return state.select(F.struct(F.col('key.k').alias('name')).alias('key'), "
            f"{GOOD}.alias('value'))",
            "key has the columns name",
            "k STRING",
        ),
        (
            "value = F.struct(F.when(F.col('key.k') != 'b', 1).cast('long').alias('count'), "
            "F.lit(1).cast('long').alias('sum'))\n    return state.withColumn('value', value)",
            r"value\.count may not be null, in 1 row",
            "'b'",
        ),
        (
            f"rows = state.withColumn('value', {GOOD})\n    return rows.union(rows.limit(1))",
            "two rows have one key, in 1 row",
            "'k'",
        ),
        (
            f"return state.withColumn('value', {GOOD}).where(\"key.k <> 'c'\")",
            "keys of the old state are not in the new, in 1 row",
            "'c'",
        ),
        ("return 1", "gives a int, not a DataFrame", ""),
        ("return state.select('nosuch')", "Spark refuses what the function does", "nosuch"),
        ("raise ValueError('no')", "fails: ValueError: no", ""),
    ],
    ids=["columns", "value", "key", "null", "twice", "dropped", "no frame", "analysis", "raises"],
)
def test_a_wrong_function_is_caught_before_anything_is_written(
    place: Place, body: str, words: str, shown: str, tmp_path: Path
) -> None:
    code = place.migration(f"def operator_0(state):\n    {body}")
    new = tmp_path / "new"
    with pytest.raises(FloodmarkError, match=words) as refused:
        api.migrate(str(place.old), str(new), app=place.app, with_file=code, carrying=GO)
    assert shown in f"{refused.value.why} {refused.value.do}"
    assert not new.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "has no function for the state"),
        ("def operator_7(state): ...", "no such operator"),
        ("def operator_0_nosuch(state): ...", "names no store"),
        ("import nosuch", "fails on import"),
        ("merge = {'sum': 'concat'}", "merge is a dict of column"),
        ("def merge(key, values): ...", "merge: no keys become one"),
        ("def merge_7(key, values): ...", "merge_7: the new code has no such operator"),
    ],
)
def test_a_file_that_is_no_migration_is_wrong_use(
    place: Place, text: str, words: str, tmp_path: Path
) -> None:
    code = place.migration(text)
    with pytest.raises(FloodmarkError, match=words):
        api.migrate(str(place.old), str(tmp_path / "n"), app=place.app, with_file=code)


def test_a_skeleton_is_a_migration(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert floodmark(["migrate", str(place.old), "--app", place.app, "--skeleton"]) == 0
    text = capsys.readouterr().out
    assert "new value  count BIGINT NOT NULL, sum BIGINT" in text
    (tmp_path / "MIGRATION.py").write_text(text)
    arguments = ["migrate", str(place.old), str(tmp_path / "new"), "--app", place.app]
    status = floodmark([*arguments, "--with", str(tmp_path / "MIGRATION.py"), "--execute"])
    assert status == 0, capsys.readouterr().err
    found = {row["key"]["k"]: row["value"] for row in api.state(str(tmp_path / "new")).rows()}
    assert found == {k: {"count": n, "sum": None} for k, n in (("a", 4), ("b", 2), ("c", 2))}


def test_sources_that_changed_places_keep_their_own(spark: Any, tmp_path: Path) -> None:
    """By position, each would go on from the other's place, whatever becomes of the state."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        write_half(folder, 1)
    other = f"spark.readStream.schema({continuity_matrix.SCHEMA!r}).json({str(second)!r})"
    code = '{0}.union({1}).groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("s"))'
    apps = []
    for name, order in (("old", ("events", other)), ("new", (other, "events"))):
        text = code.format(*order)
        apps.append(write_app(tmp_path / f"{name}.py", text, ONE, first, tmp_path / name))
    old = tmp_path / "old"
    run(spark, apps[0], old, noted=True)
    assert api.check(str(old), apps[1]).verdict.value == "needs-migration"
    api.migrate(str(old), str(tmp_path / "new"), app=apps[1], carrying=GO)
    lists = [(tmp_path / f"new/sources/{number}/0").read_text() for number in (0, 1)]
    assert [str(second) in lists[0], str(first) in lists[1]] == [True, True]
    assert [str(first) in lists[0], str(second) in lists[1]] == [False, False]


def test_a_plan_changes_nothing_and_says_where_each_column_comes_from(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new"
    assert floodmark(["migrate", str(place.old), str(new), "--app", place.app, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert not new.exists()
    steps = [step for step in plan["steps"] if step["do"] == "rewrite-state"]
    assert [step["path"] for step in steps] == ["state/0"]
    assert any("sum is new" in note for note in plan["notes"])


def _both_ways(old: Path, folder: Path, app: str, **options: Any) -> int:
    """How many rows this process and the executors write, which must be the same ones."""
    found = []
    for where, on_spark in (("here", False), ("there", True)):
        new = str(folder / where)
        api.migrate(str(old), new, app=app, on_spark=on_spark, carrying=GO, **options)
        written = api.inspect(new)
        batches = (written.committed_batch, written.in_flight_batch)
        found.append(
            [
                sorted(map(repr, api.state(new, batch=batch).rows()))
                for batch in batches
                if batch is not None
            ]
        )
    assert found[0] == found[1]
    return sum(map(len, found[0]))


def test_executors_rewrite_as_this_process_does(spark: Any, place: Place, tmp_path: Path) -> None:
    assert _both_ways(place.old, tmp_path, place.app) == 3


def test_executors_bring_keys_together(spark: Any, merging: Place, tmp_path: Path) -> None:
    how: dict[str, Any] = {"merge": ["count=sum", "sum=sum"], "accept": ["filter-changed"]}
    assert _both_ways(merging.old, tmp_path, merging.app, **how) == 3
    old, last = shutil.copytree(merging.old, tmp_path / "old"), api.inspect(str(merging.old))
    for file in (f"{last.committed_batch}", f".{last.committed_batch}.crc"):
        (old / "commits" / file).unlink()
    # The batch in flight has left its state, which goes along as changes.
    both = _both_ways(old, tmp_path / "in flight", merging.app, **how)
    assert both > 3


def test_executors_take_the_rows_of_a_function(spark: Any, place: Place, tmp_path: Path) -> None:
    code = place.migration(f"def operator_0(state):\n    return state.withColumn('value', {GOOD})")
    assert _both_ways(place.old, tmp_path, place.app, with_file=code) == 3


def test_a_stream_begins_with_state_from_a_file(spark: Any, tmp_path: Path) -> None:
    """As if the new code had seen the first half: then only the second is there to be read."""
    source, new = tmp_path / "input", tmp_path / "new"
    app = write_app(tmp_path / "app.py", NEW, ONE, source, new)
    write_half(tmp_path / "first", 1)
    first = spark.read.schema(continuity_matrix.SCHEMA).json(str(tmp_path / "first"))
    first.createOrReplaceTempView("first_half")
    totals = spark.sql("SELECT k, count(*) AS count, sum(v) AS sum FROM first_half GROUP BY k")
    totals.write.parquet(str(tmp_path / "totals.parquet"))
    write_half(source, 2)
    table = str(tmp_path / "totals.parquet")
    change = api.bootstrap(str(new), app=app, state=table, carrying=GO)
    assert change.executed
    exported, again = tmp_path / "exported.parquet", tmp_path / "again"
    kept = api.state(str(new))
    assert kept.export(str(exported)) == 3
    api.bootstrap(str(again), app=app, state=str(exported), carrying=GO)
    assert api.state(str(again)).rows() == kept.rows()
    found = run(spark, app, new, since=1)
    assert found == [("a", 6, 39), ("b", 3, 18), ("d", 2, 23)]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("k, count(*) AS n, sum(v) AS sum", "its columns are k, n, sum"),
        ("k, 'x' AS count, sum(v) AS sum", "count is STRING, not BIGINT"),
        ("'a' AS k, count(*) AS count, sum(v) AS sum", "two rows have one key"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    spark: Any, columns: str, words: str, tmp_path: Path
) -> None:
    app = write_app(tmp_path / "app.py", NEW, ONE, tmp_path / "input", tmp_path / "new")
    write_half(tmp_path / "input", 1)
    first = spark.read.schema(continuity_matrix.SCHEMA).json(str(tmp_path / "input"))
    first.createOrReplaceTempView("first_half")
    table = str(tmp_path / "t.parquet")
    spark.sql(f"SELECT {columns} FROM first_half GROUP BY first_half.k").write.parquet(table)
    with pytest.raises(FloodmarkError, match=words):
        api.bootstrap(str(tmp_path / "new"), app=app, state=table, carrying=GO)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return {'sum': 1}", r"gives \{'sum': 1\} for \{'k': 'a'\}, not count, sum"),
        ("return {'count': 1, 'sum': 1.5}", "(?s)gives .* for .*1.5"),
        ("raise ValueError('no')", r"fails for \{'k': 'a'\}: ValueError: no"),
        ("return {'count': None, 'sum': 1}", r"value\.count may not be null, in 1 row"),
    ],
    ids=["columns", "type", "raises", "null"],
)
def test_a_wrong_merge_is_caught_before_anything_is_written(
    spark: Any, merging: Place, body: str, words: str, tmp_path: Path
) -> None:
    # Only a has rows that become one: the others are as they are.
    code = merging.migration(f"def merge(key, values):\n    {body}")
    new = tmp_path / "new"
    how: dict[str, Any] = {"with_file": code, "accept": ["filter-changed"], "carrying": GO}
    with pytest.raises(FloodmarkError, match=words):
        api.migrate(str(merging.old), str(new), app=merging.app, **how)
    assert not new.exists()


@pytest.fixture(scope="module")
def merging(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The old code groups by one column more; in its state only a key `a` is there twice."""
    made = Place(tmp_path_factory.mktemp("merging"))
    finer = NEW.replace('"k"', '"k", F.col("city") == "x"', 1).replace(
        "events", "events.where(\"k = 'a' OR city = 'x'\")"
    )
    app = write_app(made.folder / "old_app.py", finer, ONE, made.source, made.old)
    run(spark, app, made.old, noted=True)
    return made


def test_a_stream_begins_with_lists_and_maps_from_tables(spark: Any, tmp_path: Path) -> None:
    one = Scenario(
        "transformWithState", "from tables", COLLECTIONS, COLLECTIONS, provider="rocksdb"
    )
    source, new = tmp_path / "input", tmp_path / "new"
    app = write_app(tmp_path / "app.py", COLLECTIONS, one, source, new)
    write_half(tmp_path / "first", 1)
    first = spark.read.schema(continuity_matrix.SCHEMA).json(str(tmp_path / "first"))
    first.createOrReplaceTempView("first_half")
    tables = {
        "0/total": "SELECT k, sum(v) AS total FROM first_half GROUP BY k",
        "0/seen": "SELECT k, collect_list(struct(v)) AS elements FROM first_half GROUP BY k",
        "0/byCity": "SELECT k, struct(city) AS user_map_key, struct(count(*) AS n) AS "
        "user_map_value FROM first_half GROUP BY k, city",
    }
    state = {}
    for name, query in tables.items():
        state[name] = str(tmp_path / f"{name.replace('/', '-')}.parquet")
        spark.sql(query).write.parquet(state[name])
    session = spark.newSession()
    with continuity_matrix.settings(session, one):
        wanted = continuity_matrix.expected(session, one, tmp_path, app, source)
        write_half(source, 2)
        conf = [f"{key}={value}" for key, value in continuity_matrix.conf_of(one).items()]
        api.bootstrap(str(new), app=app, state=state, conf=conf, carrying=GO)
        assert run(session, app, new, since=1) == wanted
        twice = spark.read.parquet(state["0/byCity"])
        state["0/byCity"] = str(tmp_path / "twice.parquet")
        twice.union(twice.limit(1)).write.parquet(state["0/byCity"])
        other = str(tmp_path / "other")
        with pytest.raises(FloodmarkError, match="two rows have one key"):
            api.bootstrap(other, app=app, state=state, conf=conf, carrying=GO)
