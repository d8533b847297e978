"""Plain scripts that plain Spark has run, and that were changed: what `check` says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import floodmark
from floodmark.errors import FloodmarkError
from floodmark.rules.restarts.reason import Judgement, Verdict

pytestmark = pytest.mark.spark
_HEAD = """
from pyspark.sql import SparkSession, functions as f

spark = SparkSession.builder.getOrCreate()


def read(name):
    return spark.readStream.schema("k STRING, g STRING, v LONG").json("{folder}/" + name)


"""
_TOTALS = """
query = rows.groupBy("k").agg(f.sum("v").alias("s")).writeStream.outputMode("update")
query.format("noop").option("checkpointLocation", "{folder}/ck").trigger(availableNow=True).start()
"""
_ONE, _TWO = "again = rows\n", "again = read('in')\n"
_TWICE = "rows = read('in')\n{again}rows = rows.union(again)\n"


class Scripts:
    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        for name in ("in", "more"):
            (folder / name).mkdir()
            (folder / name / "1.json").write_text(json.dumps({"k": "a", "g": "b", "v": 1}))

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text((_HEAD + text).replace("{folder}", str(self.folder)))
        return str(path)

    def run(self, frame: Any, **options: Any) -> None:
        """As the script would: Spark alone, without notes."""
        writer = frame.writeStream.format("noop").options(**options)
        writer = writer.option("checkpointLocation", str(self.folder / "ck"))
        query = writer.outputMode("update").trigger(availableNow=True).start()
        assert query.awaitTermination(300)

    def read(self, name: str = "in") -> Any:
        reader = self.spark.readStream.schema("k STRING, g STRING, v LONG")
        return reader.json(str(self.folder / name))

    def judged(self, old: str | None, new: str) -> Judgement:
        before = None if old is None else self.write("old.py", old)
        return floodmark.check(str(self.folder / "ck"), self.write("new.py", new), old=before)


@pytest.fixture
def scripts(spark: Any, tmp_path: Path) -> Scripts:
    return Scripts(spark.newSession(), tmp_path)


def _sums(frame: Any) -> Any:
    return frame.groupBy("k").agg({"v": "sum"}).withColumnRenamed("sum(v)", "s")


def test_a_stream_that_is_read_twice_keeps_one_list_of_files(scripts: Scripts) -> None:
    rows = scripts.read()
    scripts.run(_sums(rows.union(rows)))
    one, two = (_TWICE.replace("{again}", again) + _TOTALS for again in (_ONE, _TWO))
    assert scripts.judged(one, one).verdict is Verdict.SAME
    found = scripts.judged(one, two)
    assert found.verdict is Verdict.NEEDS_NEW_CHECKPOINT
    assert "sources/1" in found.reasons[0].what
    # Nobody says what the old code was: the list tells as much, and no source came or went.
    assert {one.rule for one in scripts.judged(None, one).reasons} == {"last-start-unknown"}
    assert scripts.judged(None, two).verdict is Verdict.NEEDS_NEW_CHECKPOINT


def test_migrate_makes_no_checkpoint_for_two_dataframes_of_one(scripts: Scripts) -> None:
    rows = scripts.read()
    scripts.run(_sums(rows.union(rows)))
    one, two = (_TWICE.replace("{again}", again) + _TOTALS for again in (_ONE, _TWO))
    with pytest.raises(FloodmarkError, match="another number of DataFrames"):
        floodmark.migrate(
            str(scripts.folder / "ck"),
            str(scripts.folder / "new"),
            app=scripts.write("new.py", two),
            from_app=scripts.write("old.py", one),
        )


def test_a_stream_that_is_read_twice_before_another_one(scripts: Scripts) -> None:
    rows = scripts.read()
    scripts.run(_sums(rows.union(rows).union(scripts.read("more"))))
    text = _TWICE + "rows = rows.union(read('more'))\n" + _TOTALS
    one, two = (text.replace("{again}", again) for again in (_ONE, _TWO))
    assert {one.rule for one in scripts.judged(None, one).reasons} == {"last-start-unknown"}
    assert scripts.judged(one, two).verdict is Verdict.NEEDS_NEW_CHECKPOINT


@pytest.mark.parametrize(
    ("before", "now", "verdict", "words"),
    [
        (
            ".format('json').partitionBy('k').option('path', '{folder}/out')",
            ".format('json').partitionBy('g').option('path', '{folder}/out')",
            Verdict.UNKNOWN,
            "partitioned by g, and was by k",
        ),
        (".toTable('first')", ".toTable('second')", Verdict.COMPATIBLE, "table is second"),
        (
            ".foreachBatch(lambda rows, batch: rows.collect())",
            ".foreachBatch(lambda rows, batch: None)",
            Verdict.COMPATIBLE,
            "was not compared",
        ),
    ],
)
def test_what_a_writer_is_told_beside_its_options_is_compared(
    scripts: Scripts, before: str, now: str, verdict: Verdict, words: str
) -> None:
    scripts.run(scripts.read())
    texts = []
    for sink in (before, now):
        started = sink if sink.startswith(".toTable") else f"{sink}.start()"
        writer = "read('in').writeStream.option('checkpointLocation', '{folder}/ck')"
        texts.append(f"{writer}.trigger(availableNow=True){started}\n")
    assert scripts.judged(texts[0], texts[0]).verdict is Verdict.SAME
    found = scripts.judged(*texts)
    assert found.verdict is verdict
    assert any(words in one.what for one in found.reasons)


def test_files_that_are_partitioned_in_two_ways_are_no_table(scripts: Scripts) -> None:
    out, checkpoint = str(scripts.folder / "out"), str(scripts.folder / "ck")
    for at, key in enumerate("kg"):
        row = json.dumps({"k": "c", "g": "d", "v": at})
        (scripts.folder / "in" / f"{at + 2}.json").write_text(row)
        writer = scripts.read().writeStream.format("json").partitionBy(key).option("path", out)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        assert query.awaitTermination(300)
    with pytest.raises(Exception, match=r"(?i)conflicting partition column names"):
        scripts.spark.read.json(out).collect()


_IN_SQL = """
rows = read("in").createOrReplaceTempView("events")
query = spark.sql('''{sql}''').writeStream.outputMode("update").format("noop")
query.option("checkpointLocation", "{folder}/ck").trigger(availableNow=True).start()
"""
_PLAIN_SQL = "SELECT k, sum(v) s FROM events GROUP BY k"
_NAMED_SQL = "WITH named AS (SELECT k, {v} x FROM events) SELECT k, sum(x) s FROM named GROUP BY k"
_STATE_IN_IT = (
    "WITH named AS (SELECT k, {v} x FROM events), totals AS (SELECT k, sum(x) s FROM named "
    "GROUP BY k) SELECT * FROM totals"
)


@pytest.mark.parametrize("sql", [_NAMED_SQL, _STATE_IN_IT])
def test_a_common_table_expression_is_no_source(scripts: Scripts, sql: str) -> None:
    """Spark's plan has a leaf for each use of one, and that leaf is a stream."""
    scripts.run(_sums(scripts.read()))
    plain, named, other = (
        _IN_SQL.replace("{sql}", one)
        for one in (_PLAIN_SQL, sql.replace("{v}", "v"), sql.replace("{v}", "v * 2"))
    )
    assert scripts.judged(plain, named).verdict is Verdict.SAME
    found = scripts.judged(named, other)
    assert found.verdict is not Verdict.SAME
    assert [one.rule for one in found.reasons] == ["aggregates-mean-another"]
