"""Plain scripts of production: started by Spark alone, changed, judged, carried over, run.

Each is run by Python on half of its input; the changed script goes on with the rest, and what
it then puts out is compared with a batch query over all of it. Functions, classes and
processors are the scripts' own, and are found by Spark's workers.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from floodmark.cli.main import run

pytestmark = pytest.mark.spark

HEAD = """
import sys
import pandas as pd
from pyspark.sql import SparkSession, functions as F

PLACE, CHECKPOINT, OUT = sys.argv[1:4]
spark = SparkSession.builder.appName("orders").getOrCreate()

def stream(name):
    schema = "id long, customer string, amount long, at timestamp"
    return spark.readStream.schema(schema).json(f"{PLACE}/{name}").withWatermark("at", "1 hour")

def save(rows, number):
    rows.write.mode("overwrite").json(f"{OUT}/{number:05d}")
"""
TAIL = """
writer = result.writeStream.outputMode(MODE).foreachBatch(save).trigger(availableNow=True)
writer.option("checkpointLocation", CHECKPOINT).start().awaitTermination()
"""
WINDOWS = (
    HEAD
    + """
MODE = "update"
orders = stream("orders")
result = orders.groupBy(F.window("at", "5 minutes"), "customer").agg(F.count("*").alias("n"))
result = result.select(F.col("window.start").alias("start"), "customer", "n")
"""
    + TAIL
)
JOIN = (
    HEAD
    + """
MODE = "append"
orders, clicks = stream("orders"), stream("clicks").withColumnRenamed("id", "click")
result = orders.alias("o").join(clicks.alias("c"), F.expr(
    "o.customer = c.customer AND c.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES"))
result = result.select(F.col("o.id").alias("id"), F.col("click"))
"""
    + TAIL
)
CHAIN = (
    HEAD
    + """
MODE = "append"
orders = stream("orders").dropDuplicatesWithinWatermark(["id"])
result = orders.groupBy(F.window("at", "5 minutes")).agg(F.sum("amount").alias("total"))
result = result.select(F.col("window.start").alias("start"), "total")
"""
    + TAIL
)
SUMS = (
    HEAD
    + """
MODE = "update"
result = stream("orders").groupBy("customer").agg(
    F.sum("amount").alias("a"), F.sum("id").alias("i")).select("customer", "a", "i")
"""
    + TAIL
)
PANDAS = (
    HEAD
    + """
from pyspark.sql.streaming.state import GroupStateTimeout

def count(key, frames, state):
    seen = state.get[0] if state.exists else 0
    seen += sum(len(frame) for frame in frames)
    state.update((seen,))
    yield pd.DataFrame({"customer": [key[0]], "n": [seen]})

MODE = "update"
result = stream("orders").groupBy("customer").applyInPandasWithState(
    count, "customer string, n long", "n long", "update", GroupStateTimeout.NoTimeout)
"""
    + TAIL
)
PROCESSOR = (
    HEAD
    + """
from pyspark.sql.streaming import StatefulProcessor

spark.conf.set(
    "spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
)

class Amount:
    def __init__(self, total):
        self.total = total

@F.udf("long")
def doubled(amount):
    return amount * 2

class Totals(StatefulProcessor):
    def init(self, handle):
        self.total = handle.getValueState("total", "total long")

    def handleInputRows(self, key, rows, timers):
        known = Amount(self.total.get()[0] if self.total.exists() else 0)
        for frame in rows:
            known.total += int(frame["amount"].sum())
        self.total.update((known.total,))
        yield pd.DataFrame({"customer": [key[0]], "total": [known.total]})

    def close(self):
        pass

MODE = "update"
orders = stream("orders").withColumn("amount", doubled("amount"))
result = orders.groupBy("customer").transformWithStateInPandas(
    Totals(), "customer string, total long", "Update", "None")
"""
    + TAIL
)
SHORT = "pandas state, with another column out"


CASES: dict[str, tuple[Any, ...]] = {
    # old script, changes, verdict, keys of the rows, the batch query, options of migrate
    "windowed counts, with a sum added": (
        WINDOWS,
        (
            ('alias("n"))', 'alias("n"), F.sum("amount").alias("total"))'),
            ('"customer", "n")', '"customer", "n", "total")'),
        ),
        "needs-migration",
        ("start", "customer"),
        "SELECT window(at, '5 minutes').start AS start, customer, count(*) AS n FROM orders "
        "GROUP BY window(at, '5 minutes'), customer",
        ("--default", "sum=0"),
    ),
    "three changes at once": (
        WINDOWS,
        (
            ('alias("n"))', 'alias("n"), F.max("amount").alias("most"))'),
            ('"customer", "n")', '"customer", F.col("n").alias("orders"), "most")'),
            ("\nwriter = ", '\nresult = result.where("orders > 0")\nwriter = '),
        ),
        "needs-migration",
        ("start", "customer"),
        "SELECT window(at, '5 minutes').start AS start, customer, count(*) AS orders FROM orders "
        "GROUP BY window(at, '5 minutes'), customer",
        (),
    ),
    # Spark folds the select into the aggregation, and would take one sum for the other.
    "two sums, selected in another order": (
        SUMS,
        (('select("customer", "a", "i")', 'select("customer", "i", "a")'),),
        "needs-migration",
        ("customer",),
        "SELECT customer, sum(amount) AS a, sum(id) AS i FROM orders GROUP BY customer",
        (),
    ),
    "two sums, written in another order and selected in the old one": (
        SUMS,
        (
            ('F.sum("amount").alias("a"), F.sum("id").alias("i")', "X"),
            ("X", 'F.sum("id").alias("i"), F.sum("amount").alias("a")'),
        ),
        "same",
        ("customer",),
        "SELECT customer, sum(amount) AS a, sum(id) AS i FROM orders GROUP BY customer",
        (),
    ),
    "a join, with another column out": (
        JOIN,
        (('F.col("click"))', 'F.col("click"), F.col("o.amount").alias("amount"))'),),
        "",
        ("id", "click"),
        "SELECT o.id, c.id AS click FROM orders o JOIN clicks c ON o.customer = c.customer "
        "AND c.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES",
        (),
    ),
    "two stateful operators, with a count added": (
        CHAIN,
        (
            ('alias("total"))', 'alias("total"), F.count("*").alias("n"))'),
            ('"total")\n', '"total", "n")\n'),
        ),
        "needs-migration",
        ("start",),
        "SELECT w.start AS start, total FROM (SELECT window(at, '5 minutes') AS w, "
        "sum(amount) AS total FROM (SELECT DISTINCT id, amount, at FROM orders) GROUP BY 1) "
        "WHERE w.end <= (SELECT max(at) - INTERVAL 1 HOUR FROM orders)",
        ("--default", "count=0"),
    ),
    "pandas state, with another column out": (
        PANDAS,
        (("\nwriter = ", '\nresult = result.withColumn("twice", F.col("n") * 2)\nwriter = '),),
        "compatible",
        ("customer",),
        "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
        (),
    ),
    "a processor, with another column out": (
        PROCESSOR,
        (("\nwriter = ", '\nresult = result.withColumn("half", F.col("total") / 2)\nwriter = '),),
        "compatible",
        ("customer",),
        "SELECT customer, 2 * sum(amount) AS total FROM orders GROUP BY customer",
        (),
    ),
}


def put(place: Path, half: int) -> None:
    for name in ("orders", "clicks"):
        (place / name).mkdir(parents=True, exist_ok=True)
        rows = []
        for number in range(12):
            rows.append(
                {
                    # The last of a half comes again in the next: a duplicate.
                    "id": half * 11 + number,
                    "customer": f"c{(half * 11 + number) % 3}",
                    "amount": half * 11 + number,
                    "at": f"2026-11-16T06:{(half * 11 + number) % 50:02d}:00Z",
                }
            )
        if half == 2:  # far ahead, so that the windows before it close
            rows = [{"id": 999, "customer": "z", "amount": 0, "at": "2026-11-16T09:00:00Z"}]
        text = "\n".join(json.dumps(row) for row in rows)
        (place / name / f"{half}.json").write_text(text + "\n")


def latest(out: Path, keys: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for batch in sorted(out.iterdir()):
        for file in batch.glob("*.json"):
            for line in file.read_text().splitlines():
                row = json.loads(line)
                found[tuple(row[key] for key in keys)] = row
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one == SHORT else [pytest.mark.soak]) for one in CASES],
)
def test_a_changed_script_goes_on_as_the_batch_query_says(
    name: str,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    old_text, changes, verdict, keys, query, options = CASES[name]
    new_text = old_text
    for before, after in changes:
        assert before in new_text, before
        new_text = new_text.replace(before, after)
    (tmp_path / "old.py").write_text(old_text)
    (tmp_path / "new.py").write_text(new_text)
    place, out, first = tmp_path / "in", tmp_path / "out", str(tmp_path / "ck")
    put(place, 0)
    monkeypatch.setattr(sys, "argv", ["old.py", str(place), first, str(out)])
    runpy.run_path(str(tmp_path / "old.py"), run_name="__main__")
    put(place, 1)
    put(place, 2)

    def command(*arguments: str) -> tuple[int, Any, str]:
        capsys.readouterr()
        status = run(list(arguments))
        said = capsys.readouterr()
        return status, json.loads(said.out) if said.out.startswith("{") else said.out, said.err

    new, old, goal = str(tmp_path / "new.py"), str(tmp_path / "old.py"), first
    given = ("--", str(place), first, str(out))
    status, found, said = command("check", first, new, "--old", old, "--json", *given)
    assert "verdict" in found, said
    if verdict:
        assert found["verdict"] == verdict, found["reasons"]
    if found["verdict"] not in ("same", "compatible"):
        goal = str(tmp_path / "ck2")
        given = ("--", str(place), goal, str(out))
        asked = ("migrate", first, goal, "--app", new, "--old", old, *options)
        status, _, said = command(*asked, "--execute", *given)
        assert status == 0, said
    status, _, said = command("run", new, *given)
    assert status == 0, said
    for table in ("orders", "clicks"):
        rows = spark.read.schema("id long, customer string, amount long, at timestamp")
        rows.json(f"{place}/{table}").createOrReplaceTempView(table)
    answer = spark.sql(f"SELECT to_json(struct(*)) FROM ({query})")
    wanted = [json.loads(row[0]) for row in answer.collect()]
    results = latest(out, keys)
    assert set(results) == {tuple(row[key] for key in keys) for row in wanted}
    for row in wanted:
        shown = results[tuple(row[key] for key in keys)]
        if "n" in shown:  # what the old script put out, and the rest of the input left as it is
            shown["orders"] = shown["n"]
        assert {key: shown.get(key) for key in row} == row
