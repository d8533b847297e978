"""A batch that is given twice is written once: Delta, SQLite and a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy
from ledgers import create_sold, insert, sold
from streams import put_orders, read_orders

from floodmark.engine.sinks.exactly_once import once
from floodmark.engine.sinks.ledger import LEDGER, Entry, Ledger
from floodmark.engine.start.launch import start
from floodmark.engine.start.lease import take
from floodmark.errors import WrongUse
from floodmark.storage.files import open_files

if TYPE_CHECKING:
    from services.postgres import PostgresServer


def ledger(tmp_path: Path) -> tuple[Ledger, Any]:
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/db")
    create_sold(engine)
    return Ledger(engine, LEDGER), engine


def test_a_batch_that_is_recorded_is_skipped(tmp_path: Path) -> None:
    book, engine = ledger(tmp_path)
    assert book.write(Entry("q", 0), insert(0))
    assert not book.write(Entry("q", 0), insert(0))
    assert book.write(Entry("q", 1), insert(1))
    assert not book.write(Entry("q", 0), insert(0))
    assert book.write(Entry("another query", 0), insert(100))
    assert sold(engine) == [0, 1, 100]


def test_a_write_that_fails_leaves_no_entry(tmp_path: Path) -> None:
    book, engine = ledger(tmp_path)

    def half(connection: Any) -> None:
        insert(0)(connection)
        raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        book.write(Entry("q", 0), half)
    assert sold(engine) == []
    assert book.write(Entry("q", 0), insert(0))
    assert sold(engine) == [0]


def test_a_second_driver_that_comes_too_late_skips_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, engine = ledger(tmp_path)
    book.write(Entry("q", 0), insert(0))
    # It looked before the first had written: the entry itself tells it.
    looks = iter([False])
    has = Ledger._has
    monkeypatch.setattr(Ledger, "_has", lambda *told: next(looks, has(*told)))
    assert not book.write(Entry("q", 0), insert(0))
    assert sold(engine) == [0]


def test_the_ledger_does_not_grow_for_ever(tmp_path: Path) -> None:
    book, engine = ledger(tmp_path)
    for batch in (0, 1, 500, 1500):
        book.write(Entry("q", batch), insert(batch))
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
        assert query.awaitTermination(300)
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
    assert len(seen) == 1  # the second start finds the batch in the table's log


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


def run_once(spark: Any, tmp_path: Path, write: Any) -> Any:
    """One available batch through foreachBatch, as floodmark.start runs it."""
    writer = read_orders(spark, tmp_path / "orders").writeStream.foreachBatch(write)
    query = start(writer.trigger(availableNow=True), tmp_path / "ck")
    try:
        assert query.awaitTermination(300)
    except Exception:  # read from the query
        return query
    return query


def forget_commit(tmp_path: Path, batch: int) -> None:
    for name in (f"{batch}", f".{batch}.crc"):
        (tmp_path / "ck/commits" / name).unlink()


def table(spark: Any, path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(str(path)).collect())


@pytest.mark.spark
def test_two_sinks_on_one_table_both_get_their_rows(spark: Any, tmp_path: Path) -> None:
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"))
    path = tmp_path / "table"
    plain = once.delta(str(path), lambda batch: batch.selectExpr("customerId", "'all' AS kind"))
    other = once.delta(str(path), lambda batch: batch.selectExpr("customerId", "'some' AS kind"))

    def unnamed(batch: Any, batch_id: int) -> None:
        plain(batch, batch_id)
        other(batch, batch_id)

    refused = run_once(spark, tmp_path, unnamed)
    assert "is used twice in one batch without a name" in str(refused.exception())
    assert table(spark, path) == [("c1", "all")]

    named = {
        kind: once.delta(
            f"file:{path}",
            lambda batch, kind=kind: batch.selectExpr("customerId", f"'{kind}' AS kind"),
            name=kind,
        )
        for kind in ("all", "some")
    }

    def both(batch: Any, batch_id: int) -> None:
        for sink in named.values():
            sink(batch, batch_id)

    # The first has written this batch without its name; the second never got it.
    assert run_once(spark, tmp_path, both).exception() is None
    assert table(spark, path) == [("c1", "all"), ("c1", "some")]
    put_orders(tmp_path / "orders", "b", ("c2", "2.00"))
    assert run_once(spark, tmp_path, both).exception() is None
    forget_commit(tmp_path, 1)
    # The same functions in the same process: a restart by `run --restart on-failure`.
    assert run_once(spark, tmp_path, both).exception() is None
    assert table(spark, path) == [(c, k) for c in ("c1", "c2") for k in ("all", "some")]


@pytest.mark.spark
def test_two_sinks_in_one_database_both_get_their_rows(spark: Any, tmp_path: Path) -> None:
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"))
    url = f"sqlite:///{tmp_path}/db"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE sold (kind TEXT, customer TEXT)"))

    def sink(kind: str, name: str | None) -> Any:
        statement = sqlalchemy.text(f"INSERT INTO sold VALUES ('{kind}', :customerId)")

        def write(connection: Any, batch: Any, batch_id: int) -> None:
            connection.execute(statement, [row.asDict() for row in batch.collect()])

        return once.sql(url, write, name=name)

    def given(*sinks: Any) -> Any:
        def write(batch: Any, batch_id: int) -> None:
            for each in sinks:
                each(batch, batch_id)

        return write

    refused = run_once(spark, tmp_path, given(sink("all", None), sink("some", None)))
    assert "is used twice in one batch without a name" in str(refused.exception())
    assert run_once(spark, tmp_path, given(sink("all", "all"), sink("some", "some")))
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text("SELECT kind, customer FROM sold"))
        assert sorted(tuple(row) for row in found) == [("all", "c1"), ("some", "c1")]
    engine.dispose()


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["delta", "sql"])
def test_a_run_that_was_taken_over_in_its_batch_writes_nothing(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    """Another run takes the checkpoint while this one is between the batch's start and its sink."""
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"))
    url = f"sqlite:///{tmp_path}/db"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE sold (batch INTEGER)"))

    def insert_batch(connection: Any, batch: Any, batch_id: int) -> None:
        connection.execute(sqlalchemy.text(f"INSERT INTO sold VALUES ({batch_id})"))

    to_delta = once.delta(str(tmp_path / "table"))
    to_sql = once.sql(url, insert_batch)
    others = []

    def write(batch: Any, batch_id: int) -> None:
        others.append(take(open_files(str(tmp_path / "ck")), "other", None, force=True))
        (to_delta if kind == "delta" else to_sql)(batch, batch_id)

    query = run_once(spark, tmp_path, write)
    assert "another run has taken over" in str(query.exception())
    assert not (tmp_path / "table").exists()
    assert rows_of(engine) == []
    (other,) = others
    assert other.epoch == 2
    assert not other.superseded()
    other.release()
    engine.dispose()


def rows_of(engine: Any) -> list[int]:
    with engine.connect() as connection:
        return [row[0] for row in connection.execute(sqlalchemy.text("SELECT batch FROM sold"))]
