"""Flows of declarative pipelines: judged by their definitions, carried into the next number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.main import run
from floodmark.engine.pipelines.declarative import built_flow

Capture = pytest.CaptureFixture[str]
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
OLD, NEW = 'F.sum("amount")', 'F.greatest(F.sum("amount"), F.max("amount"))'
CHECKPOINTS = "storage/_checkpoints/spark_catalog/default/totals/totals"


def put(place: Path, number: int, *rows: tuple[str, int, str]) -> None:
    (place / "in").mkdir(exist_ok=True)
    lines = [
        json.dumps({"customer": customer, "amount": amount, "at": f"2026-11-16T{at}:00Z"})
        for customer, amount, at in rows
    ]
    (place / "in" / f"{number}.json").write_text("\n".join(lines) + "\n")


def define(place: Path, folder: str, aggregate: str) -> Path:
    code = place / folder / "transformations"
    code.mkdir(parents=True, exist_ok=True)
    text = DEFINITIONS.replace("{place}", str(place)).replace("{aggregate}", aggregate)
    (code / "totals.py").write_text(text)
    (code.parent / "beside.py").write_text('TABLE = "totals"\n')
    spec = code.parent / "spark-pipeline.yml"
    spec.write_text(SPEC.replace("{place}", str(place)))
    return spec


@pytest.fixture
def place(tmp_path: Path) -> Path:
    put(tmp_path, 1, ("a", 1, "06:01"), ("b", 2, "06:02"), ("a", 3, "06:20"))
    return tmp_path


def given(capsys: Capture, *arguments: object) -> tuple[int, Any, str]:
    capsys.readouterr()
    status = run([str(one) for one in arguments])
    said = capsys.readouterr()
    return (
        status,
        json.loads(said.out) if "--json" in arguments and said.out else said.out,
        said.err,
    )


def go_on(spec: Path, checkpoint: Path, rows: list[tuple[str, int]]) -> None:
    """The flow's own query, as the runner starts it, with a sink that can be looked into."""

    def keep(frame: Any, number: int) -> None:
        rows.extend((row.customer, row.total) for row in frame.collect())

    with built_flow(str(spec), (str(checkpoint),), {}, None, True) as found:
        found.writer.foreachBatch(keep).option(
            "checkpointLocation", str(checkpoint)
        ).start().awaitTermination(120)


def test_a_changed_flow_is_judged_and_carried_into_the_next_number(
    spark: Any, place: Path, capsys: Capture
) -> None:
    old, new = define(place, "old", OLD), define(place, "new", NEW)
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
    assert "no flow of its Python definitions is meant: gone" in said
    assert "They define: all_of_it, totals." in said
    status, _, said = given(capsys, "check", checkpoint, f"{spec}:all_of_it")
    assert status == 2
    assert "flow all_of_it does not stream" in said
    (place / "new" / "transformations" / "odd.py").write_text("import json\njson.loads('{')\n")
    status, _, said = given(capsys, "check", checkpoint, spec)
    assert status == 2
    assert "odd.py fails: JSONDecodeError" in said


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_runner_itself_goes_on_from_what_was_carried(place: Path) -> None:
    """`floodmark run` looks, refuses what Spark would refuse, and starts the runner."""

    def floodmark(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "floodmark", *map(str, words)],
            cwd=place / "code",
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )

    hive = ("--conf", "spark.sql.catalogImplementation=hive")
    spec, first = define(place, "code", OLD), place / CHECKPOINTS / "0"
    ran = floodmark("run", spec, *hive)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "0 flows have a checkpoint" in ran.stderr
    assert list((first / "_floodmark" / "starts").iterdir())  # the code, noted
    before = sorted(path.name for path in (first / "offsets").iterdir())
    define(place, "code", NEW)
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
