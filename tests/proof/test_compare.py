"""Two codes over the same past batches: what differs is found row by row, and nothing else is."""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from replays import files_of

from floodmark import api
from floodmark.cli.compare import text
from floodmark.engine.proof.compare import CodeComparison
from floodmark.engine.proof.row_diff import RowCounts, compare_rows
from floodmark.errors import NotEmpty, WrongUse

SCRIPT = """\
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate().newSession()
spark.conf.set("spark.sql.shuffle.partitions", "2")
spark.conf.set("spark.sql.codegen.wholeStage", "false")
schema = "k string, v long, x long, at timestamp"
rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json({source!r})
names = spark.createDataFrame([("a", "Ann"), ("b", "Bob")], "k string, name string")
out = {code}
out.writeStream.outputMode({mode!r}).format("noop").option("checkpointLocation", {checkpoint!r})\\
    .trigger(availableNow=True).start().awaitTermination()
"""
AT = "2026-01-01T10:{:02}:00Z"
FILES = (
    (("a", 1, 1, 0), ("b", 2, 1, 1)),
    (("a", 10, 2, 4), ("c", 3, 1, 12)),
    (("b", 20, 3, 21), ("c", -5, 1, 22)),
)
SUM = 'rows.groupBy("k").agg(F.sum("v").alias("s"))'
PASS = 'rows.select("k", "v")'
WINDOW = 'rows.groupBy(F.window("at", "{}"), "k").agg(F.sum("v").alias("s"))'
JOIN = 'rows.join(names, "k", "{}").select("k", "v", "name")'


@dataclass(frozen=True)
class Change:
    """New code in the place of old."""

    old: str
    new: str
    differences: set[tuple[int, str, str, str]] = field(default_factory=set)
    """(batch, change, old rows, new rows), rows as the values of their columns."""
    mode: str = "update"
    columns: tuple[str, ...] = ()
    migrated: bool = False
    keys: tuple[str, ...] = ()
    batches: tuple[int, int] = (1, 2)
    """From 0 on where no state fits both codes."""


def told(*rows: tuple[Any, ...]) -> str:
    return json.dumps(rows)


CHANGES: Mapping[str, Change] = {
    "a filter narrowed": Change(
        PASS, f'{PASS}.where("v > 5")', {(1, "only-old", told(("c", 3)), told()),
                                         (2, "only-old", told(("c", -5)), told())}, "append",
    ),
    "another factor": Change(
        PASS, 'rows.selectExpr("k", "v * 2 AS v")',
        {(1, "changed", told(("a", 10)), told(("a", 20))),
         (1, "changed", told(("c", 3)), told(("c", 6))),
         (2, "changed", told(("b", 20)), told(("b", 40))),
         (2, "changed", told(("c", -5)), told(("c", -10)))}, "append", keys=("k",),
    ),
    "a filter below a sum": Change(
        SUM, 'rows.where("v > 0").groupBy("k").agg(F.sum("v").alias("s"))',
        {(2, "only-old", told(("c", -2)), told())},
    ),
    "another column summed": Change(
        SUM, 'rows.groupBy("k").agg(F.sum("x").alias("s"))',
        {(0, "changed", told(("b", 2)), told(("b", 1))),
         (1, "changed", told(("a", 11)), told(("a", 3))),
         (1, "changed", told(("c", 3)), told(("c", 1))),
         (2, "changed", told(("b", 22)), told(("b", 4))),
         (2, "changed", told(("c", -2)), told(("c", 2)))}, batches=(0, 2),
    ),
    "an aggregate added": Change(
        SUM, 'rows.groupBy("k").agg(F.sum("v").alias("s"), F.count("*").alias("n"))',
        columns=("n",), migrated=True,
    ),
    "a max in place of a sum above the state": Change(
        SUM, f'{SUM}.withColumn("s", F.greatest("s", F.lit(10)))',
        {(1, "changed", told(("c", 3)), told(("c", 10))),
         (2, "changed", told(("c", -2)), told(("c", 10)))},
    ),
    "a join's type": Change(
        JOIN.format("left"), JOIN.format("inner"),
        {(1, "only-old", told(("c", 3, None)), told()),
         (2, "only-old", told(("c", -5, None)), told())}, "append",
    ),
    "a column renamed": Change(
        PASS, 'rows.select("k", F.col("v").alias("w"))', columns=("v", "w"), mode="append",
    ),
    "a window moved": Change(
        WINDOW.format("10 minutes"), WINDOW.format("20 minutes"),
        {(0, "only-old", "10:00", ""), (0, "only-new", "", "10:00"),
         (1, "only-old", "10:00", ""), (1, "only-old", "10:10", ""), (1, "only-new", "", "10:00"),
         (2, "only-old", "10:20", ""), (2, "only-new", "", "10:20")}, batches=(0, 2),
    ),
    "a row doubled": Change(
        PASS, f"{PASS}.withColumn('n', F.explode(F.array(F.lit(1), F.lit(2)))).drop('n')",
        {(1, "only-new", told(), told(("a", 10))), (1, "only-new", told(), told(("c", 3))),
         (2, "only-new", told(), told(("b", 20))), (2, "only-new", told(), told(("c", -5)))},
        "append",
    ),
}  # fmt: skip
REFACTORINGS: Mapping[str, Change] = {
    "a select in two steps": Change(
        PASS, 'rows.select("k", "v", "x").select("k", "v")', mode="append"
    ),
    "filters in another order": Change(
        'rows.where("v > 0").where("x > 0").select("k", "v")',
        'rows.where("x > 0 AND v > 0").select("k", "v")',
        mode="append",
    ),
    "SQL in place of functions": Change(SUM, 'rows.groupBy("k").agg(F.expr("sum(v) AS s"))'),
    "an alias": Change(
        SUM, 'rows.withColumnRenamed("v", "w").groupBy("k").agg(F.sum("w").alias("s"))'
    ),
    "a case written as an if": Change(
        'rows.selectExpr("k", "CASE WHEN v > 5 THEN 1 ELSE 0 END AS v")',
        'rows.selectExpr("k", "if(v > 5, 1, 0) AS v")',
        mode="append",
    ),
}


class Pair:
    def __init__(self, folder: Path, change: Change) -> None:
        self.place, source = folder / "ck", folder / "in"
        source.mkdir(parents=True)
        for number, rows in enumerate(FILES):
            path = source / f"{number}.json"
            lines = [
                json.dumps({"k": k, "v": v, "x": x, "at": AT.format(minute)})
                for k, v, x, minute in rows
            ]
            path.write_text("\n".join(lines) + "\n")
            os.utime(path, (1_700_000_000 + number,) * 2)
        self.old, self.new = folder / "old.py", folder / "new.py"
        for path, code in ((self.old, change.old), (self.new, change.new)):
            path.write_text(
                SCRIPT.format(
                    code=code, source=str(source), mode=change.mode, checkpoint=str(self.place)
                )
            )
        runpy.run_path(str(self.old), run_name="__main__")

    def compare(self, **named: Any) -> Any:
        return api.compare(str(self.place), old=str(self.old), new=str(self.new), **named)


def run(folder: Path, change: Change) -> Any:
    pair = Pair(folder, change)
    before = files_of(pair.place)
    found = pair.compare(batches=change.batches, keys=change.keys)
    assert files_of(pair.place) == before, "the checkpoint is only read"
    return found


def shown(one: Any) -> tuple[int, str, str, str]:
    def side(rows: Any) -> str:
        values = [tuple(row.values()) for row in rows]
        if values and isinstance(values[0][0], dict):
            return str(values[0][0]["start"])[11:16]
        return told(*values) if values or not windowed else ""

    windowed = any("window" in row for row in (*one.old, *one.new))
    return one.batch, one.change, side(one.old), side(one.new)


def judged(change: Change, found: Any) -> None:
    assert {shown(one) for one in found.sample} == change.differences
    assert {*found.columns_only_old, *found.columns_only_new} == set(change.columns)
    assert found.migrated is change.migrated
    assert found.differ == bool(change.differences or change.columns)
    assert found.changed + found.only_old + found.only_new == len(found.sample)


QUICK = ("a filter below a sum", "an aggregate added")


@pytest.mark.spark
@pytest.mark.parametrize("name", QUICK)
def test_a_change_is_found_with_its_rows(spark: Any, name: str, tmp_path: Path) -> None:
    judged(CHANGES[name], run(tmp_path, CHANGES[name]))


@pytest.mark.spark
def test_a_migration_is_for_the_checkpoint_of_the_user_not_for_a_fork(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = CHANGES["an aggregate added"]
    pair = Pair(tmp_path, change)
    elsewhere = pair.new.read_text().replace(str(pair.place), str(tmp_path / "other"))
    pair.new.write_text(elsewhere)
    assert pair.compare(batches=change.batches).migrated
    said = [one for one in capsys.readouterr().err.splitlines() if "is judged with" in one]
    assert said
    assert all(one.endswith(f"is judged with {pair.place}") for one in said), said


@pytest.mark.soak
@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_found_with_its_rows(spark: Any, name: str, tmp_path: Path) -> None:
    judged(CHANGES[name], run(tmp_path, CHANGES[name]))


@pytest.mark.soak
@pytest.mark.parametrize("name", REFACTORINGS)
def test_a_refactoring_gives_no_difference(spark: Any, name: str, tmp_path: Path) -> None:
    found = run(tmp_path, REFACTORINGS[name])
    judged(REFACTORINGS[name], found)
    assert found.equal == (3 if "filters" in name else 4)


@pytest.mark.spark
def test_from_the_beginning_exported_and_refused(spark: Any, tmp_path: Path) -> None:
    pair = Pair(tmp_path, CHANGES["an aggregate added"])
    found = pair.compare(export=str(tmp_path / "out"))
    assert (found.first_batch, found.last_batch) == (0, 2), "all that there are, ten at most"
    assert (found.equal, found.migrated, found.keys) == (6, False, ("k",))
    assert found.columns_only_new == ("n",)
    pair.new.write_text(pair.old.read_text().replace('F.sum("v")', 'F.sum(F.col("v") + 1)'))
    found = pair.compare(limit=1, export=str(tmp_path / "all"))
    lines = (tmp_path / "all" / "differences.jsonl").read_text().splitlines()
    assert len(found.sample) == 1
    assert found.changed == len(lines) == 6
    with pytest.raises(NotEmpty):
        pair.compare(export=str(tmp_path / "all"))
    with pytest.raises(WrongUse, match="not a column of both"):
        pair.compare(batches=(0, 0), keys=("nothing",))
    with pytest.raises(WrongUse, match="no batch 9 yet"):
        pair.compare(batches=(1, 9))
    pair.new.write_text(pair.old.read_text().replace("out = rows", "out = rows.union(rows)"))
    with pytest.raises(WrongUse, match="reads 2 sources"):
        pair.compare()


def test_rows_are_matched_by_key_or_as_a_whole() -> None:
    old = [{"k": "a", "s": 1}, {"k": "b", "s": 2}, {"k": "c", "s": 3}]
    new = [{"k": "a", "s": 1}, {"k": "b", "s": 5}, {"k": "d", "s": 4}]
    counts, found = compare_rows(7, old, new, ["k"], ["k", "s"])
    assert counts == RowCounts(1, 1, 1, 1)
    assert [(one.change, one.key["k"]) for one in found] == [
        ("changed", "b"),
        ("only-old", "c"),
        ("only-new", "d"),
    ]
    counts, found = compare_rows(7, [*old, old[0]], new, [], ["k", "s"])
    assert counts == RowCounts(1, 0, 3, 2)
    assert next(dict(one.old[0]) for one in found if one.old) == old[0], "it was there twice"


def test_rows_without_a_common_column_are_not_equal() -> None:
    counts, found = compare_rows(7, [{"a": 1}, {"a": 1}], [{"b": 1}], [], [])
    assert counts == RowCounts(0, 0, 2, 1)
    assert [dict((*one.old, *one.new)[0]) for one in found] == [{"a": 1}, {"a": 1}, {"b": 1}]


FILE_SINK = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate().newSession()
rows = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 1).json({source!r})
out = rows.selectExpr("k", "v", "v + {more} AS w")
out.writeStream.format("json").option("checkpointLocation", {place!r}).option("path", {sink!r})\\
    .trigger(availableNow=True).start().awaitTermination()
"""


@pytest.mark.spark
def test_a_file_sink_that_is_ahead_of_the_first_batch_is_no_matter(
    spark: Any, tmp_path: Path
) -> None:
    """Its own log has all of the batches; new code for another folder can be compared as well."""
    places = {name: str(tmp_path / name) for name in ("source", "place", "sink")}
    (tmp_path / "source").mkdir()
    for number in range(3):
        path = tmp_path / "source" / f"{number}.json"
        path.write_text(json.dumps({"k": f"k{number}", "v": number}))
        os.utime(path, (1_700_000_000 + number,) * 2)
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text(FILE_SINK.format(**places, more=0))
    new.write_text(FILE_SINK.format(**{**places, "sink": str(tmp_path / "elsewhere")}, more=1))
    runpy.run_path(str(old), run_name="__main__")
    before = files_of(tmp_path / "sink")

    found = api.compare(places["place"], old=str(old), new=str(new), batches=(1, 2), keys="k")

    assert (found.equal, found.changed, found.only_old, found.only_new) == (0, 2, 0, 0)
    assert files_of(tmp_path / "sink") == before
    assert not (tmp_path / "elsewhere").exists()
    # Of two columns with one name, both are compared.
    for path, more in ((old, 0), (new, 1)):
        path.write_text(path.read_text().replace(f"v + {more} AS w", f"v + {more} AS v"))
        path.write_text(path.read_text().replace('"json"', '"noop"'))
    found = api.compare(places["place"], old=str(old), new=str(new), batches=(1, 2), keys="k")
    assert (found.equal, found.changed) == (0, 2)


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ((), None),
        (("old", "new"), "Both codes have a foreachBatch function"),
        (("new",), "The new code has a foreachBatch function"),
    ],
)
def test_what_a_function_does_with_its_rows_is_not_compared(
    functions: tuple[str, ...], words: str | None
) -> None:
    found = CodeComparison(
        "ck", 1, 2, "same", False, ("k",), 3, 0, 0, 0, (), (), (), foreach_batch=functions
    )
    last = text(found, "old.py", "new.py").splitlines()[-1]
    assert last == "Both put out the same." if words is None else last.startswith(words), last
    assert words is None or "was not compared" in last


def test_no_state_is_carried_over_to_the_first_batch_and_that_is_said() -> None:
    found = CodeComparison("ck", 0, 2, None, False, ("k",), 3, 0, 0, 0, (), (), ())
    words = "Both began with batch 0 and no state"
    assert words in text(found, "old.py", "new.py")
    assert words not in text(replace(found, first_batch=1), "old.py", "new.py")
