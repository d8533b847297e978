"""Drills of pipelines whose fate is known: the faults are found where they are, sound ones pass.

A faulty and a sound sink run with every `make test`; all twelve pipelines are `make soak`.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from drill.drilled import FAULTY, ROWS, SCRIPT, SOUND, Drilled, sample
from floodmark import api, inspect
from floodmark.errors import WrongUse
from floodmark.testing import StreamUnderTest

if TYPE_CHECKING:
    from services.kafka import KafkaServer
    from services.postgres import PostgresServer

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(1800)


def drilled(base: Path, one: Drilled, *points: str) -> api.drilling.Drill:
    app = one.write(base)
    before = sorted(base.rglob("*"))
    found = api.drill(
        str(app), input=str(sample(base)), point=points, scratch=str(base / "scratch")
    )
    after = sorted(base.rglob("*"))
    assert after == sorted([*before, base / "sample.jsonl"]), "nothing of the user's was touched"
    assert 0 < found.rows <= ROWS, "a filter may keep rows from being read"
    return found


def require_caught(found: api.drilling.Drill, one: Drilled) -> None:
    failed = {result.point: result for result in found.points if result.survived is False}
    for point, what in one.fails:
        assert point in failed, found.points
        assert getattr(failed[point], what) > 0, failed[point]
    assert not found.survived
    assert any(one.advice in words for words in found.advice), found.advice


BOTH = """
from floodmark import once, pipeline


@pipeline(checkpoint="{base}/ck", needs=("delta",))
def both(spark, start):
    rows = spark.readStream.schema("id BIGINT, k STRING, v BIGINT").json("{base}/in")
    kept = once.delta("{base}/once")

    def write(batch, batch_id):
        kept(batch, batch_id)
        batch.write.format("delta").mode("append").save("{base}/appended")
        for attempt in ATTEMPTS:
            try:
                attempt(spark, batch)
            except Exception as error:
                print(type(error).__name__, error)

    return rows.writeStream.foreachBatch(write)


def _hadoop_delete(spark, batch):
    path = spark._jvm.org.apache.hadoop.fs.Path("file:{base}/ck")
    path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, True)


def _jvm_write(spark, batch):
    batch._jdf.write().mode("overwrite").parquet("{base}/once")


def _python_write(spark, batch):
    open("{base}/once/kept", "w").write("gone")


def _path_write(spark, batch):
    import pathlib

    pathlib.Path("{base}/ck/metadata").write_text("gone")


def _remove(spark, batch):
    import shutil

    shutil.rmtree("{base}/ck")


def _program(spark, batch):
    import subprocess

    subprocess.run(["rm", "-rf", "{base}/once"], check=True)


def _sql(spark, batch):
    spark.sql("DELETE FROM parquet.`{base}/once`")


def _sqlite(spark, batch):
    import sqlite3

    with sqlite3.connect("{base}/real.db") as connection:
        connection.execute("DELETE FROM kept")


def _connect(spark, batch):
    import socket

    socket.create_connection(("127.0.0.1", 9)).send(b"gone")


ATTEMPTS = [
    _hadoop_delete, _jvm_write, _python_write, _path_write, _remove, _program, _sql, _sqlite,
    _connect,
]
"""
INNER = """
def test_both(floodmark_drill):
    found = floodmark_drill("{base}/app.py", input="{base}/sample.jsonl", point="after-sink")
    (result,) = found.points
    assert (result.survived, result.repeated, result.lost, result.wrong) == (False, 3, 0, 0)
    (place,) = result.sinks
    assert place == "{base}/appended", "once.delta has each row once"
    assert [row["id"] for row in result.sinks[place].repeated_rows] == [3, 4, 5]
    assert "once.delta" in found.advice[0]
    refused = " ".join(found.refused)
    for words in ("FileSystem.delete", "DataFrameWriter.parquet", "connects to", "program rm"):
        assert words in refused, refused
"""


def contents(base: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(base.rglob("*")):
        found[str(path)] = path.read_bytes() if path.is_file() else b""
    return found


@pytest.mark.spark
def test_a_repeated_batch_is_found_and_nothing_real_is_touched(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """By the fixture that users have. The pipeline does its worst to the real places."""
    base = tmp_path / "user"
    (base / "ck").mkdir(parents=True)
    (base / "once").mkdir()
    (base / "ck" / "metadata").write_text("real")
    (base / "once" / "kept").write_text("real")
    with closing(sqlite3.connect(base / "real.db")) as connection, connection:
        connection.execute("CREATE TABLE kept (n INTEGER)")
        connection.execute("INSERT INTO kept VALUES (1)")
    (base / "app.py").write_text(BOTH.format(base=base))
    sample(base)
    before = contents(base)
    pytester.makepyfile(INNER.format(base=base))

    # The fixture is there without a word: the package registers it.
    inner = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    inner.assert_outcomes(passed=1)
    assert contents(base) == before


@pytest.mark.spark
def test_a_stream_is_fed_killed_and_started_again(tmp_path: Path) -> None:
    app = tmp_path / "totals.py"
    app.write_text(
        SCRIPT.format(
            base=tmp_path,
            code="""
rows = spark.readStream.schema("k STRING, v BIGINT").json("nowhere")
totals = rows.groupBy("k").agg(F.sum("v").alias("total"))

def write(batch, batch_id):
    with open("totals.txt", "a") as out:
        out.writelines(f"{row.k} {row.total}\\n" for row in batch.collect())

writer = totals.writeStream.outputMode("update").foreachBatch(write)
""",
        )
    )
    stream = StreamUnderTest(app, tmp_path / "test")
    stream.feed([{"k": "a", "v": 5}])
    stream.feed([{"k": "a", "v": 2}, {"k": "b", "v": 1}])
    killed = stream.kill(at="after-sink")
    assert (killed.point, killed.batch) == ("after-sink", 0)
    assert inspect(stream.checkpoint).in_flight_batch == 0

    stream.run()

    lines = sorted(row["line"] for row in stream.rows())
    assert lines == ["a 5", "a 5", "a 7", "b 1"], "what was written before the kill, too"
    found = {row["key"]["k"]: row["value"]["sum"] for row in stream.state().rows()}
    assert found == {"a": 7, "b": 1}
    assert not (tmp_path / "ck").exists()
    assert not Path("totals.txt").exists()


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTY)
def test_every_fault_is_caught_where_it_is(name: str, tmp_path: Path) -> None:
    began = time.monotonic()
    found = drilled(tmp_path / "app", FAULTY[name])
    print(f"\n{name}: {_words(found)}; {time.monotonic() - began:.0f} s", flush=True)
    require_caught(found, FAULTY[name])


@pytest.mark.soak
@pytest.mark.parametrize("name", SOUND)
def test_every_sound_pipeline_survives(name: str, tmp_path: Path) -> None:
    began = time.monotonic()
    found = drilled(tmp_path / "app", SOUND[name])
    print(f"\n{name}: {_words(found)}; {time.monotonic() - began:.0f} s", flush=True)
    assert found.survived, found.points
    assert sum(one.survived is True for one in found.points) >= 4, found.points


def _words(found: api.drilling.Drill) -> str:
    told = {True: "survived", None: "not hit"}
    return ", ".join(
        f"{one.point} {f'({one.hit}) ' if one.point == 'random' else ''}"
        + told.get(one.survived, f"lost {one.lost} repeated {one.repeated} wrong {one.wrong}")
        + (f" ({one.words})" if one.words else "")
        for one in found.points
    )


KAFKA = """
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("drilled").getOrCreate()
records = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", "nowhere:1")
    .option("subscribePattern", "orders.*").option("startingOffsets", "latest").load())
rows = records.select(F.from_json(F.col("value").cast("string"), "id BIGINT, k STRING").alias("r"))
writer = rows.select("r.*").writeStream.format("delta").option("path", "{base}/out")
writer.option("checkpointLocation", "{base}/ck").start().awaitTermination()
"""
DELTA = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("drilled").getOrCreate()
rows = spark.readStream.format("delta").option("startingVersion", 7).load("{base}/real")
writer = rows.writeStream.format("parquet").partitionBy("key")
query = writer.start("{base}/out", checkpointLocation="{base}/ck")
query.awaitTermination()
"""
POSTGRES = """
import psycopg
from floodmark import once, pipeline
from sqlalchemy import text


@pipeline(checkpoint="{base}/ck")
def drilled(spark, start):
    rows = spark.readStream.schema("id BIGINT, k STRING, v BIGINT").json("{base}/in")

    def insert(connection, batch, batch_id):
        for row in batch.collect():
            connection.execute(text("INSERT INTO kept (id) VALUES (:id)"), {{"id": row.id}})

    kept = once.sql("postgresql+psycopg://me:secret@production.example/orders", insert)

    def write(batch, batch_id):
        kept(batch, batch_id)
        with psycopg.connect("host=production.example dbname=orders") as connection:
            for row in batch.collect():
                connection.execute("INSERT INTO added (id) VALUES (%s)", (row.id,))

    return rows.writeStream.foreachBatch(write)
"""


@pytest.mark.soak
@pytest.mark.parametrize("given", ["topic", "lines"])
def test_kafka_with_a_broker_and_without(
    given: str, kafka: KafkaServer, fetched: ModuleType, tmp_path: Path
) -> None:
    fetched.spark_connectors()
    (tmp_path / "app.py").write_text(KAFKA.format(base=tmp_path))
    lines = sample(tmp_path)
    if given == "topic":
        topic = kafka.create_topic("drilled", partitions=2)
        kafka.produce(topic, lines.read_text().splitlines())
        place = f"kafka://{kafka.bootstrap}/{topic}"
    else:
        place = str(lines)
    found = api.drill(str(tmp_path / "app.py"), input=place, point=("during-sink", "after-sink"))
    print(f"\nkafka, {given}: {_words(found)}", flush=True)
    assert found.rows == ROWS
    assert [one.survived for one in found.points] == [True, True]


@pytest.mark.soak
def test_a_delta_table_into_partitioned_files(fetched: ModuleType, tmp_path: Path) -> None:
    from chaos.inputs import DeltaInput, Event

    fetched.spark_connectors()
    (tmp_path / "app.py").write_text(DELTA.format(base=tmp_path))
    table = DeltaInput(tmp_path / "sample")
    for number in range(4):
        table.feed([Event(number * 10 + at, f"k{at}", at) for at in range(3)])
    points = ("during-sink", "after-sink")
    found = api.drill(str(tmp_path / "app.py"), input=str(tmp_path / "sample"), point=points)
    print(f"\ndelta: {_words(found)}", flush=True)
    assert (found.rows, found.batches) == (ROWS, 4)
    assert [one.survived for one in found.points] == [True, True]
    assert not (tmp_path / "out").exists()


@pytest.mark.soak
def test_postgres_by_copies_of_a_test_database(postgres: PostgresServer, tmp_path: Path) -> None:
    import psycopg

    url = postgres.create_database("drilled").replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("kept", "added"):
            connection.execute(f"CREATE TABLE {table} (n SERIAL, id BIGINT)".encode())
    (tmp_path / "app.py").write_text(POSTGRES.format(base=tmp_path))
    app, given = str(tmp_path / "app.py"), str(sample(tmp_path))

    with pytest.raises(WrongUse, match="--sink"):
        api.drill(app, input=given, point="after-sink")
    found = api.drill(app, input=given, sink=url, point=("during-sink", "after-sink"))

    print(f"\npostgres: {_words(found)}", flush=True)
    after = next(one for one in found.points if one.point == "after-sink")
    (sink,) = after.sinks.values()
    assert after.repeated == 3
    assert {row["table"] for row in sink.repeated_rows} == {"added"}, "once.sql has each once"
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM added").fetchone() == (0,)
        listed = connection.execute("SELECT datname FROM pg_database").fetchall()
    assert not [name for (name,) in listed if name.startswith("floodmark_drill")]
