"""The ledger of once.sql: names, half-written batches, commits of its own, superseded runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy
from ledgers import create_sold, insert, sold
from sqlalchemy.exc import IntegrityError

from floodmark.engine.sinks.ledger import LEDGER, Entry, Ledger
from floodmark.errors import Superseded, WouldLose, WrongUse

if TYPE_CHECKING:
    from services.postgres import PostgresServer


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.create_database("ledger")


@pytest.fixture
def engine(url: str) -> Iterator[Any]:
    engine = sqlalchemy.create_engine(url)
    create_sold(engine, "INTEGER UNIQUE")
    yield engine
    engine.dispose()


def entries(engine: Any) -> list[tuple[str, int, bool]]:
    with engine.connect() as connection:
        found = connection.execute(
            sqlalchemy.text(f"SELECT query_id, batch_id, written_at FROM {LEDGER}")
        )
        return sorted((row[0], row[1], row[2] is not None) for row in found)


def test_two_sinks_with_names_both_get_the_batch(engine: Any) -> None:
    book = Ledger(engine, LEDGER)
    assert book.write(Entry("q", 0, "orders"), insert(1))
    assert book.write(Entry("q", 0, "totals", first=False), insert(2))
    assert not book.write(Entry("q", 0, "orders"), insert(1))
    assert not book.write(Entry("q", 0, "totals", first=False), insert(2))
    assert sold(engine) == [1, 2]


def test_a_name_of_any_length_fits_the_ledger(engine: Any) -> None:
    book = Ledger(engine, LEDGER)
    query = "0f8fad5b-d9cb-469f-a165-70867728950e"
    first, second = "x" * 200, "x" * 201
    assert book.write(Entry(query, 0, first), insert(1))
    assert book.write(Entry(query, 0, second, first=False), insert(2))
    assert not book.write(Entry(query, 0, second, first=False), insert(2))


def test_an_entry_of_an_earlier_release_counts_for_the_first_sink_alone(engine: Any) -> None:
    """The package is upgraded, and names are given, while batch 7 is in flight."""
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text(
                f"CREATE TABLE {LEDGER} (query_id VARCHAR(64) NOT NULL, batch_id BIGINT NOT NULL, "
                "written_at TIMESTAMP, PRIMARY KEY (query_id, batch_id))"
            )
        )
        for batch in (5, 6, 7):
            connection.execute(
                sqlalchemy.text(f"INSERT INTO {LEDGER} VALUES ('q', {batch}, '2026-11-15 10:00')")
            )
    book = Ledger(engine, LEDGER)
    assert not book.write(Entry("q", 7), insert(70)), "without a name all is as it was"
    assert not book.write(Entry("q", 7, "orders"), insert(71))
    assert book.write(Entry("q", 7, "totals", first=False), insert(72)), "it never got batch 7"
    assert not book.write(Entry("q", 7, "orders"), insert(71)), "once more, and the same"
    assert book.write(Entry("q", 8, "orders"), insert(81))
    assert book.write(Entry("q", 8, "totals", first=False), insert(82))
    assert sold(engine) == [72, 81, 82]


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_write_may_not_end_the_transaction(engine: Any, how: str) -> None:
    book = Ledger(engine, LEDGER)

    def write(connection: Any) -> None:
        insert(1)(connection)
        getattr(connection, how)()
        insert(2)(connection)

    with pytest.raises(WrongUse, match="must not commit or roll back"):
        book.write(Entry("q", 0), write)
    assert sold(engine) == []
    assert entries(engine) == []


def test_a_refusal_that_write_catches_still_ends_the_batch(engine: Any) -> None:
    book = Ledger(engine, LEDGER)

    def write(connection: Any) -> None:
        insert(1)(connection)
        try:
            connection.commit()
        except WrongUse:
            return

    with pytest.raises(WrongUse, match="must not commit"):
        book.write(Entry("q", 0), write)
    assert sold(engine) == []


def test_a_savepoint_is_allowed(engine: Any) -> None:
    book = Ledger(engine, LEDGER)

    def write(connection: Any) -> None:
        insert(1)(connection)
        nested = connection.begin_nested()
        insert(2)(connection)
        nested.rollback()
        insert(3)(connection)

    assert book.write(Entry("q", 0), write)
    assert sold(engine) == [1, 3]


def test_a_half_written_batch_is_named(engine: Any) -> None:
    """By a COMMIT past SQLAlchemy, and a crash after it."""
    book = Ledger(engine, LEDGER)

    def write(connection: Any) -> None:
        insert(1)(connection)
        connection.connection.dbapi_connection.commit()
        raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        book.write(Entry("q", 3), write)
    assert sold(engine) == [1]
    assert entries(engine) == [("q", 3, False)]
    with pytest.raises(WouldLose, match="batch 3 is half written") as error:
        book.write(Entry("q", 3), insert(2))
    statement = error.value.do.partition("again: ")[2]
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(statement))
        connection.execute(sqlalchemy.text("DELETE FROM sold"))
    assert book.write(Entry("q", 3), insert(2))
    assert sold(engine) == [2]


def test_an_engine_that_commits_by_itself_is_refused(url: str, engine: Any) -> None:
    automatic = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with pytest.raises(WrongUse, match="keeps what was rolled back"):
        Ledger(automatic, LEDGER)
    automatic.dispose()
    assert entries(engine) == []


def test_a_conflict_in_the_users_table_is_not_already_there(engine: Any) -> None:
    book = Ledger(engine, LEDGER)
    assert book.write(Entry("q", 0), insert(1))
    with pytest.raises(IntegrityError):
        book.write(Entry("q", 1), insert(1))
    assert entries(engine) == [("q", 0, True)]
    assert book.write(Entry("q", 1), insert(2))


def test_a_superseded_run_writes_nothing(engine: Any) -> None:
    book = Ledger(engine, LEDGER)
    assert book.write(Entry("q", 4, chain="c", epoch=1), insert(4))
    assert book.write(Entry("q", 5, chain="c", epoch=2), insert(5))
    with pytest.raises(Superseded, match="another run has taken over"):
        book.write(Entry("q", 6, chain="c", epoch=1), insert(6))
    assert book.write(Entry("q", 6, chain="c", epoch=2), insert(60))
    assert book.write(Entry("q", 7, chain="a copy's", epoch=1), insert(7)), "its own numbers"
    assert sold(engine) == [4, 5, 7, 60]


@pytest.mark.services
def test_a_paused_run_that_comes_back_in_the_middle_of_its_write(
    postgres: PostgresServer,
) -> None:
    """A waits inside its transaction, B takes over: B waits for A, and skips what A wrote."""
    engine = sqlalchemy.create_engine(postgres.create_database("paused"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE sold (batch INTEGER UNIQUE)"))
    book = Ledger(engine, LEDGER)
    assert book.write(Entry("q", 0, chain="c", epoch=1), insert(0))
    inside, go_on, results = threading.Event(), threading.Event(), {}

    def slow(connection: Any) -> None:
        insert(1)(connection)
        inside.set()
        assert go_on.wait(300)

    first = threading.Thread(
        target=lambda: results.update(a=book.write(Entry("q", 1, chain="c", epoch=1), slow))
    )
    first.start()
    assert inside.wait(300)
    second = threading.Thread(
        target=lambda: results.update(b=book.write(Entry("q", 1, chain="c", epoch=2), insert(1)))
    )
    second.start()
    second.join(0.5)
    assert second.is_alive(), "it waits for the row that A holds"
    go_on.set()
    first.join(300)
    second.join(300)
    assert results == {"a": True, "b": False}
    with pytest.raises(Superseded):
        book.write(Entry("q", 2, chain="c", epoch=1), insert(2))
    assert sold(engine) == [0, 1]
    engine.dispose()
