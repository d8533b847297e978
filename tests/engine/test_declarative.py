"""Flows of declarative pipelines: judged by their definitions, carried into the next number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands import Capture, given
from floodmark.api.pipeline_run import _sentences
from floodmark.engine.pipelines.declarative import built_flow, defined, flow_codes
from floodmark.engine.pipelines.flow_looks import look_at_flows
from floodmark.storage.files import open_files

pytestmark = pytest.mark.spark

SPEC = """
name: orders
storage: file://{place}/storage
configuration:
  spark.sql.shuffle.partitions: "2"
libraries:
  - glob:
      include: transformations/**
"""
DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F
from beside import TABLE

spark = SparkSession.active()

@dp.temporary_view
def orders():
    schema = "customer string, amount long, at timestamp"
    return spark.readStream.schema(schema).json("{place}/in").withWatermark("at", "10 minutes")

@dp.table(name=TABLE)
def totals():
    rows = spark.readStream.table("orders").groupBy(F.window("at", "5 minutes"), "customer")
    return rows.agg({aggregate}.alias("total")).select("window.start", "customer", "total")

@dp.materialized_view
def all_of_it():
    return spark.range(3)
"""
VIEW = """
from pyspark import pipelines as dp

@dp.temporary_view
def orders():  # `spark` is there, as the runner has it
    schema = "customer string, amount long, at timestamp"
    return spark.readStream.schema(schema).json("{place}/in")
"""
SQL = """
-- names; in a comment
SET spark.sql.shuffle.partitions = 2;
CREATE VIEW all_of_it AS SELECT id FROM range(3);
CREATE MATERIALIZED VIEW kept AS SELECT id FROM range(4);
CREATE STREAMING TABLE totals;
CREATE FLOW totals AS INSERT INTO totals BY NAME
SELECT window.start, customer, {aggregate} AS total
FROM STREAM orders WATERMARK at DELAY OF INTERVAL 10 MINUTES
GROUP BY window(at, '5 minutes'), customer;
"""
OLD, NEW = 'F.sum("amount")', 'F.greatest(F.sum("amount"), F.max("amount"))'
IN_SQL = {OLD: "sum(amount)", NEW: "greatest(sum(amount), max(amount))"}
CHECKPOINTS = "storage/_checkpoints/spark_catalog/default/totals/totals"


def put(place: Path, number: int, *rows: tuple[str, int, str]) -> None:
    (place / "in").mkdir(exist_ok=True)
    lines = [
        json.dumps({"customer": customer, "amount": amount, "at": f"2026-11-16T{at}:00Z"})
        for customer, amount, at in rows
    ]
    (place / "in" / f"{number}.json").write_text("\n".join(lines) + "\n")


def define(place: Path, folder: str, aggregate: str, language: str = "python") -> Path:
    code = place / folder / "transformations"
    code.mkdir(parents=True, exist_ok=True)
    text = DEFINITIONS if language == "python" else VIEW
    text = text.replace("{place}", str(place)).replace("{aggregate}", aggregate)
    (code / "totals.py").write_text(text)
    (code.parent / "beside.py").write_text('TABLE = "totals"\n')
    if language == "sql":
        (code / "totals.sql").write_text(SQL.replace("{aggregate}", IN_SQL[aggregate]))
    spec = code.parent / "spark-pipeline.yml"
    spec.write_text(SPEC.replace("{place}", str(place)))
    return spec


@pytest.fixture
def place(tmp_path: Path) -> Path:
    put(tmp_path, 1, ("a", 1, "06:01"), ("b", 2, "06:02"), ("a", 3, "06:20"))
    return tmp_path


def go_on(spec: Path, checkpoint: Path, rows: list[tuple[str, int]]) -> None:
    """The flow's own query, as the runner starts it, with a sink that can be looked into."""

    def keep(frame: Any, number: int) -> None:
        rows.extend((row.customer, row.total) for row in frame.collect())

    with built_flow(str(spec), (str(checkpoint),), {}, None, True) as found:
        found.writer.foreachBatch(keep).option(
            "checkpointLocation", str(checkpoint)
        ).start().awaitTermination(300)


@pytest.mark.parametrize("language", ["python", "sql"])
def test_a_changed_flow_is_judged_and_carried_into_the_next_number(
    spark: Any, place: Path, capsys: Capture, language: str
) -> None:
    old, new = define(place, "old", OLD, language), define(place, "new", NEW, language)
    first, second = place / CHECKPOINTS / "0", place / CHECKPOINTS / "1"
    rows: list[tuple[str, int]] = []
    go_on(old, first, rows)
    status, found, said = given(capsys, "check", first, new, "--old", old, "--json")
    assert (status, found["verdict"]) == (1, "needs-migration"), said
    assert f"migrate {first} --app {new}" in found["reasons"][0]["do"]
    status, found, said = given(capsys, "check", first, old, "--old", old, "--json")
    assert (status, found["verdict"]) == (0, "same"), said
    asked = ("migrate", first, "--app", new, "--old", old, "--default", "max=0", "--execute")
    status, _, said = given(capsys, *asked)
    assert status == 0, said
    assert (second / "offsets").is_dir()
    put(place, 2, ("a", 10, "06:21"), ("a", 0, "09:00"))
    go_on(new, second, rows)
    assert sorted(rows) == [("a", 1), ("a", 13), ("b", 2)]


def test_what_is_no_flow_of_the_definitions(spark: Any, place: Path, capsys: Capture) -> None:
    spec = define(place, "new", OLD)
    checkpoint = place / CHECKPOINTS / "0"
    go_on(spec, checkpoint, [])
    status, _, said = given(capsys, "check", checkpoint, f"{spec}:gone")
    assert status == 2
    assert "cannot choose one of its flows: gone" in said
    assert "They define: all_of_it, totals." in said
    status, _, said = given(capsys, "check", checkpoint, f"{spec}:all_of_it")
    assert status == 2
    assert "flow all_of_it does not stream" in said
    (place / "new" / "transformations" / "odd.py").write_text("import json\njson.loads('{')\n")
    status, _, said = given(capsys, "check", checkpoint, spec)
    assert status == 2
    assert "odd.py fails: JSONDecodeError" in said


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE STREAMING 1 TABLE x;", "odd.sql: "),
        (
            "SELECT 1;\n\nCREATE TABLE x (id INT);",
            "odd.sql, line 2: a pipeline does not accept Project",
        ),
        ("CREATE FLOW f AS INSERT INTO x BY NAME SELECT * FROM STREAM gone;", "flow f fails: "),
        ("CREATE FLOW f AS INSERT INTO x BY NAME SELECT 1;", "flow f does not stream"),
        ("SET a;", "odd.sql, line 2: SET needs a name and a value"),
        ("USE DATABASE nowhere; CREATE STREAMING TABLE f AS SELECT * FROM STREAM t;", "nowhere"),
    ],
)
def test_sql_that_defines_no_flow(
    spark: Any, place: Path, capsys: Capture, statement: str, said: str
) -> None:
    spec, checkpoint = define(place, "new", OLD, "sql"), place / CHECKPOINTS / "0"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"5a0c362f-824f-43a3-940d-3be0f4a399fd"}')
    (place / "new" / "transformations" / "odd.sql").write_text("-- one;\n" + statement)
    status, _, err = given(capsys, "check", checkpoint, f"{spec}:f")
    assert status == 2, err
    assert said in err


def test_a_flow_that_was_renamed_leaves_its_checkpoint_behind(spark: Any, place: Path) -> None:
    spec = define(place, "new", OLD, "sql")
    more = "CREATE STREAMING TABLE changed;"
    (place / "new" / "transformations" / "more.sql").write_text(more)
    changes = """
from pyspark import pipelines as dp
dp.create_auto_cdc_flow(target="changed", source="orders", keys=["customer"], sequence_by="at")
"""
    (place / "new" / "transformations" / "changes.py").write_text(changes)
    flows = {}
    for table, flow in (("totals", "totals"), ("totals", "totals_by_day"), ("changed", "changed")):
        path = place / CHECKPOINTS / ".." / ".." / table / flow / "0"
        path.mkdir(parents=True)
        flows[flow] = os.path.abspath(path)  # noqa: PTH100
    before = sorted(place.rglob("*"))
    current = {path: open_files(path) for path in flows.values()}
    looks = look_at_flows(str(spec), current, {}, None, True)
    assert looks.orphans == (flows["totals_by_day"],)
    assert looks.unread == ("flow changed: AUTO CDC keeps its state in its table",)
    assert sorted(place.rglob("*")) == before
    said = _sentences(current, looks.orphans, looks.unread, [], frozenset())
    assert f"{flows['totals_by_day']}: no flow of the definitions has this checkpoint" in said[1]


def test_settings_of_a_flow_are_its_own(spark: Any, place: Path) -> None:
    spec = define(place, "new", OLD, "sql")
    more = "SET spark.sql.shuffle.partitions = 7; SET spark.sql.ansi.enabled = false;\n"
    more += "CREATE STREAMING TABLE plain AS SELECT customer FROM STREAM orders;"
    (place / "new" / "transformations" / "plain.sql").write_text(more)
    with defined(str(spec), {}, None, True) as (session, found):
        codes = {code.name: code for code in flow_codes(session, found)}
        seen = []
        for name in ("plain", "totals"):
            codes[name].writer()
            keys = ("spark.sql.shuffle.partitions", "spark.sql.ansi.enabled")
            seen.append(tuple(session.conf.get(key) for key in keys))
    assert seen == [("7", "false"), ("2", "true")]


def in_its_folder(place: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, beside the pipeline's code."""
    # Spark's scripts put a path before PYTHONPATH: an empty end is the runner's own folder.
    path = f"{os.environ.get('PYTHONPATH', '')}{os.pathsep}".lstrip(os.pathsep)
    here = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", "floodmark", *map(str, words)],
        cwd=place / "code",
        env={**os.environ, **here},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("language", ["python", "sql"])
def test_the_runner_itself_goes_on_from_what_was_carried(place: Path, language: str) -> None:
    """`floodmark run` looks, refuses what Spark would refuse, and starts the runner."""
    floodmark = partial(in_its_folder, place)
    hive = ("--conf", "spark.sql.catalogImplementation=hive")
    spec, first = define(place, "code", OLD, language), place / CHECKPOINTS / "0"
    ran = floodmark("run", spec, *hive)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "0 flows have a checkpoint" in ran.stderr
    assert list((first / "_floodmark" / "starts").iterdir())  # the code, noted
    before = sorted(path.name for path in (first / "offsets").iterdir())
    define(place, "code", NEW, language)
    put(place, 2, ("a", 10, "06:21"), ("a", 0, "09:00"))
    refused = floodmark("run", spec, *hive)
    assert refused.returncode == 4, refused.stdout[-3000:] + refused.stderr[-3000:]
    assert f"floodmark migrate {first} --app {spec}:totals" in refused.stderr
    assert sorted(path.name for path in (first / "offsets").iterdir()) == before
    # No --old: the first run has noted its code.
    carried = floodmark("migrate", first, "--app", spec, "--default", "max=0", "--execute", *hive)
    assert carried.returncode == 0, carried.stderr
    ran = floodmark("run", spec, *hive)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    import pyarrow.parquet as parquet

    table = parquet.read_table(place / "code" / "spark-warehouse" / "totals")
    rows = [(row["customer"], row["total"]) for row in table.to_pylist()]
    assert sorted(rows) == [("a", 1), ("a", 13), ("b", 2)]
