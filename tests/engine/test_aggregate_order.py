"""In which order the state has its aggregates: as Spark's optimizer leaves them, not as written.

A `select` above an aggregation is folded into it, so that another order of columns is another
order of the state, which Spark does not compare. What Spark writes as the state's schema is the
judge: each aggregate here has a name of its own there.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from floodmark.engine.code.outline import outline

pytestmark = pytest.mark.spark
AGGREGATES = {
    "sum": lambda: F.sum("v"),
    "count": lambda: F.count("v"),
    "max": lambda: F.max("v"),
    "min": lambda: F.min("v"),
    "bit_and": lambda: F.bit_and("v"),
}


def shuffled(rng: Random, names: list[str]) -> list[str]:
    return rng.sample(names, len(names))


def drawn(spark: Any, place: Path, rng: Random) -> Any:
    """Some aggregates, and some steps that arrange, combine, leave out or keep their columns."""
    names = shuffled(rng, list(AGGREGATES))[: rng.randrange(2, 6)]
    rows = spark.readStream.schema("k string, v long").json(str(place))
    frame = rows.groupBy("k").agg(*(AGGREGATES[name]().alias(name) for name in names))
    for _ in range(rng.randrange(0, 4)):
        kept = [one for one in frame.columns if one != "k"]
        step = rng.choice(["select", "add", "where", "drop", "twice", "rename", "combine"])
        if step == "select":
            frame = frame.select("k", *shuffled(rng, kept))
        elif step == "add":
            frame = frame.withColumn(f"c{len(kept)}", F.col(rng.choice(kept)) + 1)
        elif step == "where":
            frame = frame.where(F.col(rng.choice(kept)) > 0)
        elif step == "drop" and len(kept) > 2:
            frame = frame.drop(rng.choice(kept))
        elif step == "twice":
            one = rng.choice(kept)
            frame = frame.select(*shuffled(rng, ["k", *kept]), (F.col(one) * F.col(one)).alias("q"))
        elif step == "rename":
            one = rng.choice(kept)
            frame = frame.withColumnRenamed(one, f"{one}_r")
        elif step == "combine" and len(kept) > 1:
            first, second, *rest = shuffled(rng, kept)
            frame = frame.select("k", (F.col(first) + F.col(second)).alias("both"), *rest)
        if len(set(frame.columns)) < len(frame.columns):
            break
    return frame


def orders(spark: Any, place: Path, rng: Random) -> tuple[list[str], list[str], str]:
    frame = drawn(spark, place, rng)
    found = outline(frame.writeStream.outputMode("update").format("noop"))
    (operator,) = found.operators
    (family,) = operator.stores["default"]
    spark_says = [field["name"] for field in json.loads(family.value_json)["fields"]]
    (step,) = [one for one in found.tree.stateful if one.kind == "Aggregate"]
    functions = dict(step.expressions)["functions"]
    ours = [str(one.children[0].name) for one in functions]
    named = {"Sum": "sum", "Count": "count", "Max": "max", "Min": "min", "BitAndAgg": "bit_and"}
    return [named[one] for one in ours], spark_says, str(frame.columns)


def tried(spark: Any, place: Path, seeds: range) -> None:
    place.mkdir(exist_ok=True)
    arranged = 0
    for seed in seeds:
        ours, spark_says, columns = orders(spark, place, Random(seed))
        assert ours == spark_says, (seed, columns)
        arranged += ours != [name for name in AGGREGATES if name in ours]
    assert arranged  # or nothing was tried


def test_the_order_of_the_state_is_sparks(spark: Any, tmp_path: Path) -> None:
    tried(spark, tmp_path / "in", range(8))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_order_of_the_state_is_sparks_for_many(spark: Any, tmp_path: Path) -> None:
    tried(spark, tmp_path / "in", range(8, 208))
