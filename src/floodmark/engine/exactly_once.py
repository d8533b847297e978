"""Sinks for foreachBatch that write each batch exactly once.

Spark runs a batch again when it died before the commit, so a sink may be given the
same batch twice. A sink with transactions can tell: it records (query, batch) in the
transaction that holds the batch's rows, and a batch that is recorded is skipped.

    writer.foreachBatch(once.delta("data/orders"))
    writer.foreachBatch(once.sql("postgresql+psycopg://…", write))
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from floodmark.errors import WrongUse

LEDGER = "_floodmark_batches"
# Spark runs again only the batch that was in flight; the rest is kept to be looked at.
_LEDGER_KEEPS = 1000
_QUERY_ID = "sql.streaming.queryId"

BatchFunction = Callable[[Any, int], None]


def query_id(batch: Any) -> str:
    """The id of the query whose foreachBatch this is; it stays the same over restarts."""
    found = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not found:
        raise WrongUse(
            "this is not inside a query's foreachBatch",
            "The query's id tells its batches apart from another query's.",
            "Pass the function to writer.foreachBatch().",
        )
    return str(found)


def delta(
    path: str,
    transform: Callable[[Any], Any] | None = None,
    *,
    mode: str = "append",
    **options: str,
) -> BatchFunction:
    """Writes each batch to the Delta table at a path; `transform` turns the batch's rows first.

    The table's own log holds the query and the batch (`txn`), so one table can take part
    in several queries.
    """

    started: list[int] = []

    def write(batch: Any, batch_id: int) -> None:
        # Only the first batch after a start may be one that died after it was written.
        first = not started
        started[:] = [batch_id]
        if first and _table_has(batch, path, batch_id):
            _compute_only(batch)
            return
        rows = batch if transform is None else transform(batch)
        writer = rows.write.format("delta").mode(mode).options(**options)
        writer = writer.option("txnAppId", query_id(batch)).option("txnVersion", batch_id)
        writer.save(path)

    return write


def _table_has(batch: Any, path: str, batch_id: int) -> bool:
    """Whether the table's log records the batch; where it cannot be asked, Delta looks itself."""
    from py4j.protocol import Py4JError

    spark = batch.sparkSession
    try:
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
        recorded = log.unsafeVolatileSnapshot().transactions().get(query_id(batch))
        return bool(recorded.isDefined()) and int(recorded.get()) >= batch_id
    except (Py4JError, TypeError):  # TypeError: this Delta has no such class
        return False


def _compute_only(batch: Any) -> None:
    """For a batch that the sink has: its state still has to be written by this run.

    Since 4.1 Spark ends a stateful query whose foreachBatch left the batch unread
    (STATE_STORE_COMMIT_VALIDATION_FAILED), and the watermark moves by the rows that are read.
    """
    batch.write.format("noop").mode("overwrite").save()


def sql(
    target: Any, write: Callable[[Any, Any, int], None], *, ledger: str = LEDGER
) -> BatchFunction:
    """Calls `write(connection, batch, batch_id)` inside one transaction with the ledger's entry.

    `target` is an SQLAlchemy URL or Engine. What `write` does with the connection becomes
    visible together with the entry, or not at all.
    """
    books: list[_Ledger] = []

    def write_once(batch: Any, batch_id: int) -> None:
        if not books:  # not before the first batch: a pipeline is built without a database
            books.append(_Ledger(target, ledger))
        if not books[0].write(query_id(batch), batch_id, lambda at: write(at, batch, batch_id)):
            _compute_only(batch)

    return write_once


class _Ledger:
    """The table of the batches that a database holds."""

    def __init__(self, target: Any, name: str) -> None:
        sqlalchemy = _sqlalchemy()
        is_url = isinstance(target, (str, sqlalchemy.engine.URL))
        self._engine = sqlalchemy.create_engine(target) if is_url else target
        self._table = sqlalchemy.Table(
            name,
            sqlalchemy.MetaData(),
            sqlalchemy.Column("query_id", sqlalchemy.String(64), primary_key=True),
            sqlalchemy.Column(
                "batch_id", sqlalchemy.BigInteger, primary_key=True, autoincrement=False
            ),
            sqlalchemy.Column("written_at", sqlalchemy.DateTime(timezone=True)),
        )
        self._table.metadata.create_all(self._engine)

    def write(self, query: str, batch: int, write: Callable[[Any], None]) -> bool:
        """False if the batch was there already."""
        with self._engine.connect() as connection, connection.begin() as transaction:
            if self._has(connection, query, batch):
                return False
            # The entry first: a second driver of the same query waits here for the first.
            # No savepoint around it: SQLite's driver would commit at its end.
            try:
                connection.execute(self._entry(query, batch))
            except _sqlalchemy().exc.IntegrityError:
                transaction.rollback()
                return False
            write(connection)
            self._prune(connection, query, batch)
        return True

    def _has(self, connection: Any, query: str, batch: int) -> bool:
        columns = self._table.c
        found = self._table.select().where(columns.query_id == query, columns.batch_id >= batch)
        return connection.execute(found.limit(1)).first() is not None

    def _entry(self, query: str, batch: int) -> Any:
        now = datetime.now(timezone.utc)
        return self._table.insert().values(query_id=query, batch_id=batch, written_at=now)

    def _prune(self, connection: Any, query: str, batch: int) -> None:
        columns = self._table.c
        connection.execute(
            self._table.delete().where(
                columns.query_id == query, columns.batch_id < batch - _LEDGER_KEEPS
            )
        )


def _sqlalchemy() -> Any:
    try:
        import sqlalchemy
    except ImportError:
        raise WrongUse(
            "sqlalchemy is not installed",
            "once.sql() writes to databases through it.",
            "Install it: pip install 'floodmark[sql]'",
        ) from None
    return sqlalchemy


class Once:
    """The sinks under the name that pipelines use: `from floodmark import once`."""

    delta = staticmethod(delta)
    sql = staticmethod(sql)
    query_id = staticmethod(query_id)


once = Once()
