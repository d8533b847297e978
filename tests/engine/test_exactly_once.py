"""A batch that is given twice is written once: Delta, SQLite and a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy
from streams import put_orders, read_orders

from floodmark.engine.exactly_once import LEDGER, _Ledger, once
from floodmark.engine.launch import start
from floodmark.errors import WrongUse

if TYPE_CHECKING:
    from services.postgres import PostgresServer


def ledger(tmp_path: Path) -> tuple[_Ledger, Any]:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/db")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE rows (batch INTEGER)"))
    return _Ledger(engine, LEDGER), engine


def insert(batch: int) -> Any:
    statement = sqlalchemy.text(f"INSERT INTO rows VALUES ({batch})")
    return lambda connection: connection.execute(statement)


def rows(engine: Any) -> list[int]:
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text("SELECT batch FROM rows ORDER BY batch"))
        return [row[0] for row in found]


def test_a_batch_that_is_recorded_is_skipped(tmp_path: Path) -> None:
    book, engine = ledger(tmp_path)
    assert book.write("q", 0, insert(0))
    assert not book.write("q", 0, insert(0))
    assert book.write("q", 1, insert(1))
    assert not book.write("q", 0, insert(0))
    assert book.write("another query", 0, insert(100))
    assert rows(engine) == [0, 1, 100]


def test_a_write_that_fails_leaves_no_entry(tmp_path: Path) -> None:
    book, engine = ledger(tmp_path)

    def half(connection: Any) -> None:
        insert(0)(connection)
        raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        book.write("q", 0, half)
    assert rows(engine) == []
    assert book.write("q", 0, insert(0))
    assert rows(engine) == [0]


def test_a_second_driver_that_comes_too_late_skips_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, engine = ledger(tmp_path)
    book.write("q", 0, insert(0))
    # It looked before the first had written: the entry itself tells it.
    monkeypatch.setattr(_Ledger, "_has", lambda *_: False)
    assert not book.write("q", 0, insert(0))
    assert rows(engine) == [0]


def test_the_ledger_does_not_grow_for_ever(tmp_path: Path) -> None:
    book, engine = ledger(tmp_path)
    for batch in (0, 1, 500, 1500):
        book.write("q", batch, insert(batch))
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text(f"SELECT batch_id FROM {LEDGER}"))
        assert sorted(row[0] for row in found) == [500, 1500]


def run_twice(spark: Any, tmp_path: Path, sink: Any) -> None:
    """The second start is given batch 0 again: the first died before its commit."""
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"), ("c2", "2.00"))
    checkpoint = tmp_path / "ck"
    for attempt in range(2):
        orders = read_orders(spark, tmp_path / "orders")
        writer = orders.writeStream.foreachBatch(sink).trigger(availableNow=True)
        query = start(writer, checkpoint)
        assert query.awaitTermination(120)
        assert query.exception() is None
        if attempt == 0:
            (checkpoint / "commits" / "0").unlink()
            (checkpoint / "commits" / ".0.crc").unlink()
    assert (checkpoint / "commits" / "0").exists()


@pytest.mark.spark
def test_delta_takes_a_batch_once(spark: Any, tmp_path: Path) -> None:
    seen: list[int] = []

    def cents(batch: Any) -> Any:
        seen.append(1)
        return batch.selectExpr("customerId", "CAST(amountPaid * 100 AS BIGINT) AS cents")

    run_twice(spark, tmp_path, once.delta(str(tmp_path / "table"), cents))
    found = spark.read.format("delta").load(str(tmp_path / "table")).collect()
    assert sorted((row["customerId"], row["cents"]) for row in found) == [("c1", 100), ("c2", 200)]
    assert len(seen) == 2  # it was asked twice


@pytest.mark.spark
@pytest.mark.services
def test_postgresql_takes_a_batch_once(
    spark: Any, postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.create_database("once")
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE sold (customer TEXT, paid NUMERIC)"))
    statement = sqlalchemy.text("INSERT INTO sold VALUES (:customerId, :amountPaid)")

    def write(connection: Any, batch: Any, batch_id: int) -> None:
        connection.execute(statement, [row.asDict() for row in batch.collect()])

    run_twice(spark, tmp_path, once.sql(url, write))
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text("SELECT customer, paid FROM sold ORDER BY 1"))
        assert [(row[0], str(row[1])) for row in found] == [("c1", "1.00"), ("c2", "2.00")]
    engine.dispose()


@pytest.mark.spark
def test_outside_a_query_there_is_no_id(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="not inside a query's foreachBatch"):
        once.delta(str(tmp_path / "table"))(spark.range(1), 0)
