"""`run --bisect` names the record that a batch fails at, and changes nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark.engine.bisect.bisect import BisectReport, bisect_writer
from floodmark.engine.bisect.search import MOST_TOGETHER, Ranges, ranges_of, smallest
from floodmark.errors import WrongUse
from floodmark.storage.files import open_files

if TYPE_CHECKING:
    from services.kafka import KafkaServer

EVENT = "id BIGINT, amount BIGINT"
REFUSED = "if(amount < 0, raise_error('amount ' || amount || ' of ' || id), amount) AS amount"


def numbers(ranges: Ranges) -> set[int]:
    return {one for first, end in ranges for one in range(first, end)}


@pytest.mark.parametrize("together", [{0}, {99}, {41}, {0, 99}, {7, 8, 63}])
def test_the_search_finds_what_fails_together_and_nothing_else(together: set[int]) -> None:
    tried = []

    def fails(ranges: Ranges) -> bool:
        tried.append(ranges)
        return together <= numbers(ranges)

    assert smallest(100, frozenset(), fails) == together
    assert len(tried) <= 8 * len(together)


def test_the_search_leaves_out_what_is_known() -> None:
    poison = {3, 50, 51}
    found: frozenset[int] = frozenset()
    for _ in poison:
        one = smallest(60, found, lambda ranges: bool(poison & numbers(ranges)))
        assert one is not None
        found |= one
    assert found == poison
    assert not poison & numbers(ranges_of(60, found))


def test_the_search_gives_up_where_very_many_are_needed() -> None:
    many = set(range(0, 100, 100 // (MOST_TOGETHER + 2)))
    assert smallest(100, frozenset(), lambda ranges: many <= numbers(ranges)) is None


class Failing:
    """A query whose first batch is committed, and whose second one fails."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.session = spark.newSession()
        # Few rows and many plans: compiling code for each takes longer than running it.
        self.session.conf.set("spark.sql.codegen.wholeStage", "false")
        self.session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        self.folder = folder
        self.checkpoint = str(folder / "ck")

    def run(self, writer: Callable[[], Any], poison: Callable[[], Any]) -> None:
        self._start(writer())
        poison()
        with pytest.raises(Exception, match=r"."):
            self._start(writer())

    def _start(self, writer: Any) -> None:
        writer = writer.option("checkpointLocation", self.checkpoint).trigger(availableNow=True)
        assert writer.start().awaitTermination(300)

    def bisect(self, writer: Any, sink: bool = False) -> BisectReport:
        before = {
            path: path.read_bytes() for path in Path(self.checkpoint).rglob("*") if path.is_file()
        }
        report = bisect_writer(writer, open_files(self.checkpoint), sink)
        after = {
            path: path.read_bytes() for path in Path(self.checkpoint).rglob("*") if path.is_file()
        }
        assert before == after, "the checkpoint is only read"
        return report


@pytest.fixture
def failing(spark: Any, tmp_path: Path) -> Failing:
    return Failing(spark, tmp_path)


def put_json(path: Path, *rows: tuple[int, int] | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        row if isinstance(row, str) else json.dumps(dict(zip(("id", "amount"), row, strict=True)))
        for row in rows
    ]
    path.write_text("".join(line + "\n" for line in lines))


def noop(rows: Any) -> Any:
    return rows.writeStream.format("noop")


def only(report: BisectReport) -> Any:
    (culprit,) = report.culprits
    (record,) = culprit.records
    assert report.whole, "without it the batch does not fail"
    assert report.other_failures == ()
    return record


@pytest.mark.spark
def test_a_line_in_a_folder_of_partitions(failing: Failing, tmp_path: Path) -> None:
    source = tmp_path / "env=prod" / "in"

    def writer() -> Any:
        reader = failing.session.readStream.schema(EVENT + ", day STRING")
        rows = reader.option("cleanSource", "off").json(str(source))
        return noop(rows.selectExpr("id", "day", REFUSED))

    put_json(source / "day=1" / "a.json", (1, 1))

    def poison() -> None:
        put_json(source / "day=1" / "b.json", (2, 2), (3, 3))
        put_json(source / "day=2" / "b.json", (4, 4), "", (5, -5), (6, 6))

    failing.run(writer, poison)
    report = failing.bisect(writer())

    found = only(report)
    assert found.file == f"file://{source}/day=2/b.json"
    assert found.line == 3, "as an editor counts, the empty line too"
    assert found.words == f"source 0 (json): {found.file}, line 3"
    assert report.batch == 1
    assert report.cause is not None
    assert "amount -5 of 5" in report.cause
    assert "logOffset" in report.offsets[0]


@pytest.mark.spark
def test_a_line_that_cannot_be_parsed(failing: Failing, tmp_path: Path) -> None:
    def writer() -> Any:
        reader = failing.session.readStream.schema(EVENT).option("header", True)
        return noop(reader.option("mode", "FAILFAST").csv(str(tmp_path / "in")))

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,amount\n1,1\n")
    text = "id,amount\n2,2\n3,3\n4,four\n5,5\n"
    failing.run(writer, lambda: (tmp_path / "in" / "b.csv").write_text(text))

    assert only(failing.bisect(writer())).line == 4


@pytest.mark.spark
def test_rows_of_parquet_and_a_file_that_is_none(failing: Failing, tmp_path: Path) -> None:
    source = tmp_path / "in"

    def put(name: str, *rows: tuple[int, int]) -> None:
        frame = failing.session.createDataFrame(list(rows), EVENT).coalesce(1)
        frame.write.parquet(str(tmp_path / name))
        source.mkdir(exist_ok=True)
        (part,) = (tmp_path / name).glob("*.parquet")
        part.rename(source / f"{name}.parquet")

    def writer() -> Any:
        rows = failing.session.readStream.schema(EVENT).parquet(str(source))
        return noop(rows.selectExpr("id", REFUSED))

    put("a", (1, 1))

    def poison() -> None:
        put("b", (2, 2), (3, 3))
        put("c", (4, 4), (5, -5), (6, -6))

    failing.run(writer, poison)
    report = failing.bisect(writer())
    found = [record for culprit in report.culprits for record in culprit.records]
    assert report.whole
    assert [(Path(str(one.file)).name, one.row) for one in found] == [
        ("c.parquet", 2),
        ("c.parquet", 3),
    ], "both, each by itself"

    put("d", (4, 4))
    (source / "d.parquet").replace(source / "c.parquet")
    (source / "b.parquet").write_bytes(b"PAR1 no such file")
    report = failing.bisect(writer())
    assert report.unreadable
    assert only(report).file == f"file://{source}/b.parquet"


@pytest.mark.spark
def test_a_row_of_a_delta_table(failing: Failing, tmp_path: Path) -> None:
    table = str(tmp_path / "table")

    def put(*rows: tuple[int, int]) -> None:
        frame = failing.session.createDataFrame(list(rows), EVENT).coalesce(1)
        frame.write.format("delta").mode("append").save(table)

    def writer() -> Any:
        rows = failing.session.readStream.format("delta").load(table)
        return noop(rows.selectExpr("id", REFUSED))

    put((1, 1))
    failing.run(writer, lambda: put((2, 2), (3, 3), (4, -4)))
    found = only(failing.bisect(writer()))
    assert found.row == 3
    assert f"{table}/part-" in str(found.file)


@pytest.mark.spark
def test_what_fails_only_with_the_state_or_only_together(failing: Failing, tmp_path: Path) -> None:
    largest = 2**63 - 1

    def writer() -> Any:
        rows = failing.session.readStream.schema(EVENT).json(str(tmp_path / "in"))
        return noop(rows.groupBy("id").sum("amount")).outputMode("update")

    failing.session.conf.set("spark.sql.ansi.enabled", "true")
    put_json(tmp_path / "in" / "a.json", (1, largest), (2, 1))
    failing.run(
        writer, lambda: put_json(tmp_path / "in" / "b.json", (2, 1), (1, 1), (3, largest), (3, 1))
    )
    report = failing.bisect(writer())

    assert report.cause is not None
    assert "overflow" in report.cause.lower()
    lines = [[record.line for record in culprit.records] for culprit in report.culprits]
    assert sorted(lines) == [[2], [3, 4]], "one with the state, two together"
    assert report.whole


@pytest.mark.spark
def test_a_foreach_batch_is_not_called_unless_asked(failing: Failing, tmp_path: Path) -> None:
    from floodmark import once

    database, called = tmp_path / "sink.db", []
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE sink (id BIGINT CHECK (id < 5))")

    def insert(connection: Any, batch: Any, batch_id: int) -> None:
        import sqlalchemy

        called.append(batch_id)
        for row in batch.collect():
            connection.execute(sqlalchemy.text("INSERT INTO sink VALUES (:id)"), {"id": row.id})

    def writer() -> Any:
        rows = failing.session.readStream.schema(EVENT).json(str(tmp_path / "in"))
        return rows.writeStream.foreachBatch(once.sql(f"sqlite:///{database}", insert))

    put_json(tmp_path / "in" / "a.json", (1, 1))
    failing.run(writer, lambda: put_json(tmp_path / "in" / "b.json", (2, 2), (7, 7), (3, 3)))
    called.clear()

    report = failing.bisect(writer())
    assert (report.cause, report.culprits, called) == (None, (), [])

    report = failing.bisect(writer(), sink=True)
    assert only(report).line == 2
    assert called
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT id FROM sink").fetchall() == [(1,)], "rolled back"


@pytest.mark.spark
def test_what_cannot_be_bisected_says_so(failing: Failing, tmp_path: Path) -> None:
    def always(_batch: Any, batch_id: int) -> None:
        if batch_id:
            raise ValueError("the sink is wrong")

    def writer() -> Any:
        rows = failing.session.readStream.schema(EVENT).json(str(tmp_path / "in"))
        return rows.writeStream.foreachBatch(always)

    put_json(tmp_path / "in" / "a.json", (1, 1))
    failing._start(writer())
    with pytest.raises(WrongUse, match="no batch is in flight"):
        failing.bisect(writer())
    failing.run(writer, lambda: put_json(tmp_path / "in" / "b.json", (2, 2)))
    report = failing.bisect(writer(), sink=True)
    assert (report.needs_records, report.culprits) == (False, ())
    assert report.cause == "ValueError: the sink is wrong"
    frame = failing.session.readStream.schema(EVENT).json(str(tmp_path / "in"))
    with pytest.raises(WrongUse, match="--bisect-sink is for foreachBatch"):
        failing.bisect(noop(frame), sink=True)


@pytest.mark.spark
@pytest.mark.services
def test_a_record_of_kafka_in_a_python_function(failing: Failing, kafka: KafkaServer) -> None:
    from confluent_kafka import Producer
    from pyspark.sql import functions

    topic = kafka.create_topic("poison")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def put(*values: str) -> None:
        for number, value in enumerate(values):
            producer.produce(topic, value, key=f"k{value}", partition=number % 2)
        producer.flush(30)

    number = functions.udf(lambda value: int(value), "int")

    def writer() -> Any:
        reader = failing.session.readStream.format("kafka").option("subscribe", topic)
        reader = reader.option("kafka.bootstrap.servers", kafka.bootstrap)
        rows = reader.option("startingOffsets", "earliest").load()
        return noop(rows.select(number(functions.col("value").cast("string"))))

    put("1", "2", "3")
    failing.run(writer, lambda: put("4", "5", "six", "7"))
    report = failing.bisect(writer())
    found = only(report)
    assert (found.topic, found.partition, found.offset, found.key) == (topic, 0, 3, "ksix")
    assert found.words == f"source 0 (kafka): topic {topic}, partition 0, offset 3, key 'ksix'"
    assert report.cause == "ValueError: invalid literal for int() with base 10: 'six'"
