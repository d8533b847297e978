"""The real servers answer, and Spark speaks to them with the jars that were resolved."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from floodmark.engine.spark import jars as connectors
from patience import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from services.kafka import KafkaServer
    from services.postgres import PostgresServer
    from services.s3 import S3Server

pytestmark = pytest.mark.services


def test_kafka_gives_back_what_was_produced(kafka: KafkaServer) -> None:
    topic = kafka.create_topic("orders", partitions=2)

    kafka.produce(topic, ["a", "b", "c"])

    assert kafka.end_offsets(topic) == {0: 2, 1: 1}
    assert sorted(kafka.consume(topic)) == [b"a", b"b", b"c"]


def test_kafka_drops_old_records_when_told(kafka: KafkaServer) -> None:
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, ["a", "b", "c"])

    kafka.drop_before(topic, 0, 2)

    assert kafka.consume(topic) == [b"c"]


def test_s3_keeps_an_object_and_counts_the_requests(s3: S3Server) -> None:
    import fsspec

    files = fsspec.filesystem("s3", **s3.storage_options)
    place = s3.place("objects")

    with s3.requests() as sent:
        files.pipe_file(f"{place}/0", b"zero")
        assert files.cat_file(f"{place}/0") == b"zero"

    # s3fs also looks at an object before it reads it; how often is its own business.
    assert (sent["PUT"], sent["GET"]) == (1, 1)
    assert files.ls(place) == [f"{place.removeprefix('s3://')}/0"]


def test_s3_takes_and_deletes_many(s3: S3Server) -> None:
    import fsspec

    files = fsspec.filesystem("s3", **s3.storage_options)
    place = s3.place("many")
    files.pipe({f"{place}/{number}": str(number).encode() for number in range(20)})

    files.copy(f"{place}/7", f"{place}/copy")
    assert files.cat_file(f"{place}/copy") == b"7"
    assert len(files.find(place)) == 21

    files.rm(place, recursive=True)
    assert not files.exists(place)


def test_s3_takes_an_object_of_several_parts(s3: S3Server) -> None:
    import fsspec

    files = fsspec.filesystem("s3", **s3.storage_options)
    path = f"{s3.place('parts')}/big"
    with files.open(path, "wb", block_size=5 * 2**20) as stream:
        stream.write(b"x" * (11 * 2**20))

    assert files.info(path)["size"] == 11 * 2**20
    assert files.cat_file(path, start=-3) == b"xxx"


def test_postgres_keeps_what_is_committed_and_only_that(postgres: PostgresServer) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(postgres.create_database("sales"))
    total = sqlalchemy.text("SELECT sum(amount) FROM sales")
    add = sqlalchemy.text("INSERT INTO sales VALUES (:amount)")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE sales (amount int)"))
        connection.execute(add, [{"amount": 2}, {"amount": 3}])
    with engine.connect() as connection:
        connection.execute(add, {"amount": 100})
        connection.rollback()

    with engine.connect() as connection:
        assert connection.execute(total).scalar_one() == 5
    engine.dispose()


def test_postgres_runs_from_a_folder_that_is_closed_to_others(
    fetched: ModuleType, tmp_path: Path
) -> None:
    import psycopg

    from services.postgres import PostgresServer

    wheel = fetched.FOLDER / "postgres"
    if not wheel.is_dir():
        pytest.skip("PostgreSQL is the system's here, open to all")
    copy = Path(shutil.copytree(wheel, tmp_path / "closed" / "wheel"))
    copy.parent.chmod(0o700)

    with PostgresServer(copy / fetched.POSTGRES_PROGRAMS) as server:
        plain = server.url.replace("+psycopg", "")
        with psycopg.connect(plain) as connection:
            assert connection.execute("SELECT 6 * 7").fetchone() == (42,)


def test_kafka_comes_back_with_what_it_had(kafka: KafkaServer) -> None:
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, ["kept"])
    bootstrap = kafka.bootstrap

    kafka.stop()
    kafka.start()

    assert kafka.bootstrap == bootstrap
    assert kafka.consume(topic) == [b"kept"]


def test_postgres_comes_back_with_what_it_had(postgres: PostgresServer) -> None:
    import psycopg

    url = postgres.create_database("kept").replace("+psycopg", "")
    # Left open: a client that stays must not keep the server from ending.
    client = psycopg.connect(url, autocommit=True)
    client.execute("CREATE TABLE kept AS SELECT 7 AS number")

    postgres.stop()
    postgres.start()

    client.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


def test_a_server_ends_with_the_process_that_started_it(
    fetched: ModuleType, tmp_path: Path
) -> None:
    tests = Path(__file__).resolve().parents[1]
    script = tmp_path / "killed.py"
    script.write_text(
        f"import os, signal, sys; sys.path.insert(0, {str(tests)!r})\n"
        "from pathlib import Path\n"
        "from services.s3 import S3Server\n"
        "server = S3Server(tuple(Path(jar) for jar in sys.argv[1:]))\n"
        "server.start()\n"
        "print(server.port, server.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    jars = [str(jar) for jar in fetched.s3_server()]

    killed = subprocess.run(
        [sys.executable, str(script), *jars], capture_output=True, text=True, timeout=120
    )

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    port, folder = killed.stdout.split()
    from services.server import answers

    wait_until(lambda: not answers(int(port)), lambda: "the server still answers")
    # What a killed process cannot do for itself.
    subprocess.run(["rm", "-r", folder], check=True)


def test_stopping_needs_no_patience(fetched: ModuleType) -> None:
    from services.s3 import S3Server
    from services.server import answers

    with S3Server(fetched.s3_server()) as server:
        port, folder = server.port, server.folder
        assert answers(port)

    assert not answers(port)
    assert not folder.exists()


@pytest.mark.spark
def test_spark_reads_kafka_and_writes_delta(
    spark: SparkSession, kafka: KafkaServer, tmp_path: Path
) -> None:
    topic = kafka.create_topic("orders", partitions=2)
    kafka.produce(topic, [f"order {number}" for number in range(10)])

    def run() -> None:
        orders = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        query = (
            orders.selectExpr("CAST(value AS STRING) AS value", "partition", "offset")
            .writeStream.format("delta")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "table"))
        )
        assert query.awaitTermination(300)

    run()
    kafka.produce(topic, ["order 10"])
    run()

    rows = spark.read.format("delta").load(str(tmp_path / "table")).collect()
    assert sorted(row.value for row in rows) == sorted(f"order {n}" for n in range(11))


@pytest.mark.spark
def test_spark_streams_from_delta_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.format("delta").save(str(tmp_path / "in"))

    query = (
        spark.readStream.format("delta")
        .load(str(tmp_path / "in"))
        .selectExpr("sum(id) AS total")
        .writeStream.format("delta")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(300)

    assert spark.read.format("delta").load(str(tmp_path / "out")).first()[0] == 45


@pytest.mark.spark
def test_a_running_session_that_has_the_connectors_needs_no_jars(spark: SparkSession) -> None:
    assert spark.conf.get("spark.jars")
    # Nothing is said of jars, so that only the running JVM can tell.
    assert connectors.needed(connectors.CONNECTORS, {}) == []


def test_the_second_resolve_is_offline(
    fetched: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetched.spark_connectors()
    # Without Java nothing can be fetched.
    monkeypatch.setenv("JAVA_HOME", os.devnull)

    assert fetched.spark_connectors() == first
    assert all(jar.is_file() for jar in first)
