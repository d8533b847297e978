"""Rehearsals and first checkpoints on a real broker and a real Delta table.

What is the user's is as it was: the checkpoint, the records, the table, the sink.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compatibility.laboratory import digest
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.cli.main import run as floodmark
from floodmark.engine.code import check
from floodmark.engine.code.rehearse import rehearse as rehearse_on_a_fork
from floodmark.engine.pipelines.application import load_application
from floodmark.engine.pipelines.start_positions import read_start
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.runtime import run_application
from floodmark.rules.restarts.reason import Judgement
from floodmark.rules.restarts.rehearsal import Rehearsal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from services.kafka import KafkaServer

pytestmark = [pytest.mark.spark, pytest.mark.services]
# Compiling code for five rows costs more than anything else here.
QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
NOBODY = "127.0.0.1:9"
FROM_KAFKA = """
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", place)
    rows = rows.option("subscribe", {topic!r}).option("minOffsetsPerTrigger", 5000)
    rows = rows.option("startingOffsets", start.kafka({topic!r})).load()
    rows = rows.selectExpr("cast(value as string) as k", "cast(partition as long) as p")
"""
FROM_DELTA = """
    rows = spark.readStream.format("delta").option("maxBytesPerTrigger", "1g").load(place)
"""
APPLICATION = """
from pyspark.sql import functions as F
from floodmark import pipeline


@pipeline(checkpoint="{folder}/ck", needs=(), conf={conf})
def counts(spark, start, place={place!r}):{reading}
    rows = rows.groupBy("k").agg({aggregates})
    return rows.writeStream.outputMode("update").trigger(availableNow=True).foreachBatch(keep)


def keep(batch, number):
    found = [tuple(row) for row in batch.collect()]
    with open("{folder}/kept", "a") as out:
        out.writelines(f"{{number}} {{row}}\\n" for row in sorted(found))
"""
AT_ONE = {"version": 1, "index": -1}
COUNT = 'F.count("*").alias("n")'
MORE = f'{COUNT}, F.max("p").alias("m")'


class Place:
    def __init__(self, folder: Path, place: str, reading: str) -> None:
        self.folder, self.app, self.checkpoint = folder, folder / "app.py", folder / "ck"
        self._place, self._reading = place, reading
        self.write(COUNT)

    def write(self, aggregates: str) -> None:
        self.app.write_text(
            APPLICATION.format(
                folder=self.folder,
                place=self._place,
                conf=QUICK,
                reading=self._reading,
                aggregates=aggregates,
            )
        )

    def run(self) -> None:
        run_application(load_application(str(self.app)), RunOptions())

    def check(self, **options: Any) -> Judgement:
        return api.check(str(self.checkpoint), str(self.app), rehearse=True, **options)

    def everything(self) -> dict[str, Any]:
        return {"checkpoint": digest(self.checkpoint), "kept": (self.folder / "kept").read_text()}


@pytest.fixture
def rehearsals(monkeypatch: pytest.MonkeyPatch) -> list[Rehearsal]:
    """What Spark said, beside what the rules made of it."""
    found: list[Rehearsal] = []

    def rehearse(*arguments: Any) -> Rehearsal:
        found.append(rehearse_on_a_fork(*arguments))
        return found[-1]

    monkeypatch.setattr(check, "rehearse", rehearse)
    return found


def test_a_rehearsal_reads_a_little_of_a_real_topic(
    kafka: KafkaServer, spark: SparkSession, rehearsals: list[Rehearsal], tmp_path: Path
) -> None:
    topic = kafka.create_topic("orders")
    kafka.produce(topic, [f"k{number % 3}" for number in range(20)])
    place = Place(tmp_path, kafka.bootstrap, FROM_KAFKA.format(topic=topic))
    place.run()
    kafka.produce(topic, [f"k{number % 3}" for number in range(50)])
    before = (place.everything(), kafka.end_offsets(topic), kafka.consume(topic))

    judged = place.check(cap_rows=8)
    assert (judged.verdict.value, judged.decided_by) == ("same", "rehearsal")
    judged = place.check(cap_rows=0)
    assert judged.verdict.is_yes
    judged = place.check(empty_sources=True, settings={"place": NOBODY})
    assert judged.decided_by == "rehearsal"
    place.write(MORE)
    assert place.check(cap_rows=8).verdict.value == "needs-migration"

    capped, whole, empty, refused = rehearsals
    assert (capped.ran, capped.real_sources, capped.rows) == (True, True, 8)
    assert (whole.ran, whole.real_sources, whole.rows) == (True, True, 50)
    assert (empty.ran, empty.real_sources, empty.rows) == (True, False, 0)
    assert (refused.ran, refused.real_sources) == (False, True)
    assert refused.condition == "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
    assert (place.everything(), kafka.end_offsets(topic), kafka.consume(topic)) == before


def test_a_rehearsal_reads_one_file_of_a_real_table(
    spark: SparkSession, rehearsals: list[Rehearsal], tmp_path: Path
) -> None:
    table = tmp_path / "orders"

    def append(rows: int) -> None:
        frame = spark.range(rows).selectExpr("concat('k', id % 3) as k", "id as p")
        frame.coalesce(1).write.format("delta").mode("append").save(str(table))

    append(20)
    place = Place(tmp_path, str(table), FROM_DELTA)
    place.run()
    append(4)
    append(5)
    before = (place.everything(), digest(table))

    assert place.check().verdict.value == "same"
    assert place.check(empty_sources=True).decided_by == "rehearsal"
    place.write(MORE)
    assert place.check().verdict.value == "needs-migration"

    capped, empty, refused = rehearsals
    assert (capped.ran, capped.real_sources, capped.rows) == (True, True, 4)
    assert (empty.ran, empty.real_sources, empty.rows) == (True, False, 0)
    assert (refused.ran, refused.real_sources) == (False, True)
    assert refused.condition == "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
    assert (place.everything(), digest(table)) == before


def test_a_stream_begins_with_state_at_offsets_of_a_real_topic(
    kafka: KafkaServer, spark: SparkSession, tmp_path: Path
) -> None:
    """A batch job counts the first records, the stream the others; together they are all."""
    topic = kafka.create_topic("orders")
    kafka.produce(topic, [f"k{number % 5}" for number in range(40)])
    ends = {topic: {"0": 9, "1": 14}}
    first = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("subscribe", topic)
        .option("endingOffsets", json.dumps(ends))
        .load()
        .selectExpr("cast(value as string) as k")
    )
    state, start = tmp_path / "counts.parquet", tmp_path / "start.json"
    first.groupBy("k").count().write.parquet(str(state))
    start.write_text(json.dumps(ends))
    place = Place(tmp_path, kafka.bootstrap, FROM_KAFKA.format(topic=topic))
    arguments = ["bootstrap", str(place.checkpoint), "--app", str(place.app), "--execute"]
    assert floodmark([*arguments, "--state", str(state), "--start", str(start)]) == 0
    assert {row["key"]["k"]: row["value"]["count"] for row in _rows(place)} == {
        f"k{number}": sum(f"k{(2 * at) % 5}" == f"k{number}" for at in range(9))
        + sum(f"k{(2 * at + 1) % 5}" == f"k{number}" for at in range(14))
        for number in range(5)
    }
    kafka.produce(topic, ["k0", "k9"])
    place.run()
    assert {row["key"]["k"]: row["value"]["count"] for row in _rows(place)} == {
        **{f"k{number}": 8 + (number == 0) for number in range(5)},
        "k9": 1,
    }
    assert api.offsets(str(place.checkpoint)).sources[0].offset == {topic: {"0": 21, "1": 21}}
    with pytest.raises(Exception, match="holds"):
        api.bootstrap(
            str(place.checkpoint), app=str(place.app), state=str(state), carrying=Carrying(True)
        )


@pytest.mark.soak
def test_a_stream_begins_with_state_at_a_version_of_a_real_table(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, state, start = (tmp_path / name for name in ("orders", "counts.json", "start.json"))
    for rows in (20, 7):
        frame = spark.range(rows).selectExpr("concat('k', id % 2) as k", "id as p")
        frame.coalesce(1).write.format("delta").mode("append").save(str(table))
    state.write_text('{"k": "k0", "count": 10}\n{"k": "k1", "count": 10}\n')
    start.write_text(
        json.dumps({"floodmark": "start", "version": 1, "sources": [{"kind": "delta", **AT_ONE}]})
    )
    reading = FROM_DELTA.replace(".load(", ".options(**start.delta(place)).load(")
    place = Place(tmp_path, str(table), reading)
    arguments = ["bootstrap", str(place.checkpoint), "--app", str(place.app), "--execute"]
    assert floodmark([*arguments, "--state", str(state), "--start", str(start)]) == 0
    assert f"give `run` the same --start {start}" in " ".join(capsys.readouterr().out.split())
    run_application(load_application(str(place.app)), RunOptions(start=read_start(start)))
    counted = {row["key"]["k"]: row["value"]["count"] for row in _rows(place)}
    assert counted == {"k0": 14, "k1": 13}


def _rows(place: Place) -> list[Any]:
    return list(api.state(str(place.checkpoint)).rows())
