"""`floodmark run` from outside: kills, signals, exit statuses, bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from drivers import Driver, floodmark, logged
from streams import put_orders

APP = """
import time
from floodmark.engine.pipelines.decorator import pipeline

SCHEMA = "customerId STRING, amountPaid DECIMAL(12, 2)"

@pipeline(
    checkpoint="ck", conf={"spark.sql.shuffle.partitions": 1, "spark.ui.enabled": False}
)
def sales(spark, start, *, slow: float = 0.0):
    reader = spark.readStream.schema(SCHEMA).option("header", True)
    orders = reader.option("maxFilesPerTrigger", 1).csv("orders")
    totals = orders.groupBy("customerId").sum("amountPaid").toDF("customer", "total")

    def write(rows, batch):
        time.sleep(slow)
        rows.coalesce(1).write.mode("overwrite").json("totals")

    return totals.writeStream.outputMode("complete").foreachBatch(write)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    for number in range(5):
        put_orders(tmp_path / "orders", f"{number}", ("c1", "1.50"), (f"c{number}", "2.00"))
    return tmp_path


def totals(place: Path) -> dict[str, float]:
    lines = [line for file in (place / "totals").glob("*.json") for line in file.open()]
    return {row["customer"]: row["total"] for row in map(json.loads, lines)}


@pytest.mark.spark
def test_killed_in_a_batch_it_runs_the_batch_again_and_a_signal_lets_it_finish(
    place: Path, drivers: list[Driver]
) -> None:
    run = ("run", "app.py", "--master", "local[2]", "--trigger", "100ms")
    first = Driver(*run, "--set", "slow=1", cwd=place)
    drivers.append(first)
    first.until(lambda: (place / "ck/offsets/1").exists())
    first.kill()
    assert logged(place, "offsets") == [0, 1]
    assert logged(place, "commits") == [0]
    assert (place / "ck/_floodmark/lease.json").exists()

    second = Driver(*run, "--set", "slow=1", cwd=place)
    drivers.append(second)
    second.until(lambda: (place / "ck/offsets/2").exists())
    status, said = second.terminate()
    assert status == 0, said
    assert "runs batch 1 again, which was in flight" in said
    assert "finishing the running batch" in said
    # Between two batches: what was planned is committed.
    assert logged(place, "offsets") == logged(place, "commits")
    assert not (place / "ck/_floodmark/lease.json").exists()

    last = floodmark(*run[:-2], "--available-now", "--json", cwd=place)
    assert last.returncode == 0, last.stderr
    (report,) = json.loads(last.stdout)["pipelines"]
    assert (report["ended"], report["last_batch"]) == ("finished", 4)
    assert totals(place) == {"c1": 9.5, "c0": 2.0, "c2": 2.0, "c3": 2.0, "c4": 2.0}


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["none.py"], 2, "none.py: no such application file"),
        (["bad.py"], 2, "bad.py fails before it starts a query: ZeroDivisionError: division"),
        (["empty.py"], 2, "has ended without starting a streaming query"),
        (["app.py:other"], 2, "has no pipeline 'other'"),
        (["app.py", "--set", "slo=1"], 2, "no pipeline has a parameter 'slo'"),
        (["app.py", "--set", "slow"], 2, "not NAME=VALUE"),
        (["app.py", "--trigger", "soon"], 2, "not a duration"),
        (["app.py", "--once", "--available-now"], 2, "exclude each other"),
        (["app.py", "--start", "none.json"], 2, "cannot read the start file"),
        (["app.py", "--start", "bad.py"], 3, "not a start file"),
        (["app.py", "--allow", "all"], 2, "unknown name"),
        (["app.py", "--restart", "sometimes"], 2, "'sometimes' is not one of"),
        (["app.py", "--frobnicate"], 2, "No such option"),
    ],
)
def test_bad_input_is_one_clear_sentence(
    place: Path, arguments: list[str], status: int, words: str
) -> None:
    (place / "bad.py").write_text("1 / 0\n")
    (place / "empty.py").write_text("x = 1\n")
    found = floodmark("run", *arguments, cwd=place)
    assert found.returncode == status, found.stderr
    assert words in found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout == ""
    assert not (place / "ck").exists()


def test_a_java_that_is_too_old(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "jdk" / "bin").mkdir(parents=True)
    (place / "jdk" / "bin" / "java").touch(0o755)
    (place / "jdk" / "release").write_text('JAVA_VERSION="1.8.0_392"\n')
    monkeypatch.setenv("JAVA_HOME", str(place / "jdk"))
    found = floodmark("run", "app.py", cwd=place)
    assert found.returncode == 2
    assert "Java 8 is too old" in found.stderr
    assert not (place / "ck").exists()


def test_no_pyspark(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "away").mkdir()
    # A package that cannot be imported stands for one that is not installed.
    (place / "away" / "pyspark.py").write_text("raise ImportError('not installed')\n")
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(place / "away"), before])))
    found = floodmark("run", "app.py", cwd=place)
    assert found.returncode == 2
    assert found.stderr.startswith("ExtraMissing: this runs code on Spark, and pyspark is not inst")
    assert "pip install 'floodmark[spark]'" in found.stderr
