"""Sources added, removed, replaced or swapped: what each gives, and what must come of it.

Every row has a number of its own, and its value is a power of four: a sum of them tells of each
row whether it was counted, left out or counted twice.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HDFS, ROCKSDB = "hdfs", "rocksdb"
FILES, KAFKA, DELTA = "files", "kafka", "delta"
SCHEMA = "k string, v decimal(38,0), at timestamp"
_KEYS = ("a", "b", "c")
_APP = """\
import continuity_matrix
from floodmark import pipeline
from pyspark.sql import functions as F


@pipeline(checkpoint={checkpoint!r}, name="stream")
def stream(spark, start):
{sources}
    rows = {code}
    return rows.writeStream.outputMode("update").foreachBatch(continuity_matrix.keeper({kept!r}))
"""
_SCRIPT = """\
import sys

import continuity_matrix
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate().newSession()
for key, value in {conf!r}.items():
    spark.conf.set(key, value)
{sources}
rows = {code}
place = sys.argv[1] if len(sys.argv) > 1 else {checkpoint!r}
writer = rows.writeStream.outputMode("update").option("checkpointLocation", place)
writer = writer.foreachBatch(continuity_matrix.keeper({kept!r})).trigger(availableNow=True)
writer.start().awaitTermination()
"""


@dataclass(frozen=True)
class SourceScenario:
    kinds: tuple[str, ...]
    """Of sources a, b, c."""
    change: str
    old: str
    """The sources that the old code unites, in order."""
    new: str
    provider: str = HDFS
    code: str = '{}.groupBy("k").agg(F.sum("v").alias("s"), F.count("*").alias("n"))'
    options: dict[str, Any] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    quick: bool = False

    @property
    def name(self) -> str:
        kinds = " and ".join(dict.fromkeys(self.kinds))
        return f"sources, {kinds}: {self.change} ({self.provider})"


def source_scenarios() -> Iterator[SourceScenario]:
    accept = {"accept": ["dropped-source"]}
    for provider in (HDFS, ROCKSDB):
        for kinds in (
            (FILES, FILES, FILES),
            (KAFKA, KAFKA, KAFKA),
            (DELTA, FILES, DELTA),
            (DELTA, DELTA, FILES),
        ):
            yield SourceScenario(
                kinds, "added", "a", "ab", provider, quick=kinds[1] is KAFKA and provider is HDFS
            )
            yield SourceScenario(kinds, "added in front", "a", "ba", provider)
            yield SourceScenario(kinds, "removed", "ab", "a", provider, options=accept)
            yield SourceScenario(kinds, "the first removed", "ab", "b", provider, options=accept)
            yield SourceScenario(
                kinds,
                "replaced",
                "ab",
                "ac",
                provider,
                options=accept,
                quick=kinds[0] is DELTA and kinds[1] is FILES and provider is ROCKSDB,
            )
            yield SourceScenario(kinds, "swapped", "ab", "ba", provider)


class Feed:
    """One source: what was written to it, and how it is read."""

    _numbers = itertools.count()

    def __init__(self, kind: str, name: str, folder: Path, kafka: Any) -> None:
        self.kind, self.name, self.kafka = kind, name, kafka
        self.place = folder / name
        self.topic = kafka.create_topic(f"feed-{name}") if kind == KAFKA else ""
        self.rows: list[tuple[str, int, str]] = []
        self.files = 0

    def write(self, spark: Any, rows: Sequence[tuple[str, int, str]]) -> None:
        self.rows += rows
        lines = [json.dumps({"k": k, "v": v, "at": at}) for k, v, at in rows]
        if self.kind == FILES:
            self.place.mkdir(exist_ok=True)
            (self.place / f"{self.files}.json").write_text("\n".join(lines) + "\n")
            self.files += 1
        elif self.kind == KAFKA:
            self.kafka.produce(self.topic, lines)
        else:
            made = spark.createDataFrame([(line,) for line in lines], "line string")
            frame = made.selectExpr(f"from_json(line, '{SCHEMA}') AS row").select("row.*")
            frame.coalesce(1).write.format("delta").mode("append").save(str(self.place))

    @property
    def code(self) -> str:
        if self.kind == FILES:
            return f"spark.readStream.schema({SCHEMA!r}).json({str(self.place)!r})"
        if self.kind == DELTA:
            return f'spark.readStream.format("delta").load({str(self.place)!r})'
        options = {
            "kafka.bootstrap.servers": self.kafka.bootstrap,
            "subscribe": self.topic,
            "startingOffsets": "earliest",
        }
        read = f'spark.readStream.format("kafka").options(**{options!r}).load()'
        parsed = f"from_json(CAST(value AS string), '{SCHEMA}') AS row"
        return f'{read}.selectExpr("{parsed}").select("row.*")'


class Stage:
    """Feeds a, b and c, old code and new code."""

    def __init__(self, one: SourceScenario, folder: Path, kafka: Any) -> None:
        self.one, self.folder = one, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.feeds = {
            name: Feed(kind, name, folder, kafka)
            for name, kind in zip("abc", one.kinds, strict=True)
        }
        self._next = 0
        self.old, self.new = folder / "old", folder / "new"

    def rows(self, many: int, minute: int = 0) -> list[tuple[str, int, str]]:
        made = []
        for _ in range(many):
            key = _KEYS[self._next % len(_KEYS)]
            made.append((key, 4**self._next, f"2026-01-01T10:{minute:02}:00Z"))
            self._next += 1
        return made

    def write(self, spark: Any, many: int = 3, minute: int = 0) -> None:
        for feed in self.feeds.values():
            feed.write(spark, self.rows(many, minute))

    def app(
        self, name: str, names: str, checkpoint: Path, script: dict[str, str] | None = None
    ) -> str:
        united = names[0]
        for more in names[1:]:
            united = f"{united}.unionByName({more})"
        indent = "    " if script is None else ""
        path = self.folder / name
        template = _APP if script is None else _SCRIPT
        path.write_text(
            template.format(
                checkpoint=str(checkpoint),
                sources="\n".join(f"{indent}{n} = {self.feeds[n].code}" for n in sorted(names)),
                code=self.one.code.format(united),
                kept=str(path),
                conf=script,
            )
        )
        return str(path)


def totals(spark: Any, rows: Sequence[tuple[str, int, str]]) -> dict[str, tuple[int, int]]:
    """The batch query over what the sources should have given."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    lines = [(k, str(v)) for k, v, _ in rows]
    frame = spark.createDataFrame(lines, "k string, v string").withColumn(
        "v", F.col("v").cast("decimal(38,0)")
    )
    found = frame.groupBy("k").agg(F.sum("v").alias("s"), F.count("*").alias("n")).collect()
    return {row["k"]: (int(row["s"]), int(row["n"])) for row in found}


def newest(kept: Sequence[tuple[int, Any]]) -> dict[str, tuple[int, int]]:
    """What the sink of an updating sum has in the end."""
    found = {}
    for _, (k, s, n) in kept:
        found[k] = (int(s), int(n))
    return found


def in_words(found: dict[str, tuple[int, int]], wanted: dict[str, tuple[int, int]]) -> str:
    """Which rows were left out, and which came twice."""
    lost, twice = [], []
    for key in sorted({*found, *wanted}):
        have, want = found.get(key, (0, 0))[0], wanted.get(key, (0, 0))[0]
        for digit in range(60):
            difference = have // 4**digit % 4 - want // 4**digit % 4
            (lost if difference < 0 else twice if difference > 0 else []).append(digit)
    return f"lost {lost}, twice {twice}"


def run_source_scenario(
    spark: Any, one: SourceScenario, folder: Path, kafka: Any, from_script: bool = False
) -> Any:
    """Old code over the first rows, `check`, `migrate`, new code over the rest, twice."""
    from continuity_matrix import KEPT, Outcome, conf_of, run, run_script, settings

    from floodmark import api
    from floodmark.changes.apply import Carrying

    stage = Stage(one, folder, kafka)
    script = conf_of(one) if from_script else None
    old_app = stage.app("old_app.py", one.old, stage.old, script)
    new_app = stage.app("new_app.py", one.new, stage.new, script)

    def go_on(app: str, checkpoint: Path, noted: bool = False) -> list[tuple[int, Any]]:
        if from_script:
            run_script(app, checkpoint)
        else:
            run(spark, app, checkpoint, noted=noted)
        return list(KEPT[app])

    with settings(spark, one):
        stage.write(spark)
        kept = go_on(old_app, stage.old, noted=not from_script)
        done = [row for name in one.old for row in stage.feeds[name].rows]
        stage.write(spark)
        old = {"old": old_app} if from_script else {}
        judged = api.check(str(stage.old), new_app, **old)
        assert judged.verdict.value == "needs-migration", judged
        given = {"from_app": old_app} if from_script else {}
        api.migrate(
            str(stage.old),
            str(stage.new),
            app=new_app,
            carrying=Carrying(True, 0),
            **{**given, **one.options},
        )
        kept += go_on(new_app, stage.new)
        stage.write(spark)
        kept += go_on(new_app, stage.new)
        gone = set(one.old) - set(one.new)
        rows = [row for name in one.new for row in stage.feeds[name].rows]
        rows += [row for row in done if any(row in stage.feeds[name].rows for name in gone)]
        wanted, found = totals(spark, rows), newest(kept)
    carried = found == wanted
    return Outcome(one.name, carried, "" if carried else in_words(found, wanted), False, "")
