"""Keeps the ledger of `once.sql`: a table in the user's database, of the batches that it holds.

    query_id                    batch_id  written_at
    <query>                     7         2026-…      a sink without a name has batch 7
    <query>/<sink's name>       7         2026-…      a sink with a name has batch 7
    <query>                     8         NULL        batch 8 has begun and is not complete
    epoch/<digest>              3         2026-…      only run 3 or later may write here

One transaction begins the entry before the rows, and completes it after the rows. An entry
that is visible but not complete shows that `write` itself committed.
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from floodmark.errors import Superseded, WouldLose, WrongUse

LEDGER = "_floodmark_batches"
# Spark runs only the batch in flight again; older entries are kept for examination.
_LEDGER_KEEPS = 1000
_KEY_LENGTH = 64


@dataclass(frozen=True)
class Entry:
    """One batch of one sink."""

    query: str
    batch: int
    sink: str | None = None
    first: bool = True
    """True for the first sink of the batch: entries from before it had its name count for it."""
    chain: str = ""
    epoch: int = 0
    """The number of the run's lease, in the row of numbers named `chain`; 0: it has no lease."""

    @property
    def key(self) -> str:
        """Return the query and the sink, shortened to the ledger column's length."""
        if self.sink is None:
            return self.query
        key = f"{self.query}/{self.sink}"
        if len(key) <= _KEY_LENGTH:
            return key
        digest = hashlib.sha256(self.sink.encode()).hexdigest()
        return f"{self.query}/{digest}"[:_KEY_LENGTH]

    @property
    def fence(self) -> str:
        digest = hashlib.sha256(f"{self.chain} {self.key}".encode()).hexdigest()
        return f"epoch/{digest}"[:_KEY_LENGTH]


class Ledger:
    """Manages the table of the batches that a database holds."""

    def __init__(self, target: Any, name: str) -> None:
        sqlalchemy = _sqlalchemy()
        is_url = isinstance(target, (str, sqlalchemy.engine.URL))
        self._engine = sqlalchemy.create_engine(target) if is_url else target
        self._table = sqlalchemy.Table(
            name,
            sqlalchemy.MetaData(),
            sqlalchemy.Column("query_id", sqlalchemy.String(_KEY_LENGTH), primary_key=True),
            sqlalchemy.Column(
                "batch_id", sqlalchemy.BigInteger, primary_key=True, autoincrement=False
            ),
            sqlalchemy.Column("written_at", sqlalchemy.DateTime(timezone=True)),
        )
        self._table.metadata.create_all(self._engine)
        self._require_transactions()

    @property
    def place(self) -> str:
        """Return the database and the table."""
        return f"{self._engine.url.render_as_string(hide_password=False)} {self._table.name}"

    def write(self, entry: Entry, write: Callable[[Any], None]) -> bool:
        """Write the batch; return False if it was already there."""
        conflict: BaseException | None = None
        with self._engine.connect() as connection, connection.begin() as transaction:
            self._require_epoch(connection, entry)
            if self._has(connection, entry):
                return False
            # Insert the entry first: a second driver of the same query waits here for the first.
            # No savepoint around it: SQLite's driver would commit at its end.
            try:
                self._insert(connection, entry.key, entry.batch, complete=False)
            except _sqlalchemy().exc.IntegrityError as error:
                conflict = error
                transaction.rollback()
            else:
                with _refused_commits(connection):
                    write(connection)
                self._complete(connection, entry)
                self._prune(connection, entry)
        if conflict is not None:
            self._require_there(entry, conflict)
        return conflict is None

    def try_out(self, write: Callable[[Any], None]) -> None:
        """Write in a transaction that is always rolled back."""
        with self._engine.connect() as connection:
            transaction = connection.begin()
            try:
                with _refused_commits(connection):
                    write(connection)
            finally:
                transaction.rollback()

    def _require_there(self, entry: Entry, conflict: BaseException) -> None:
        """Raise the conflict unless another driver wrote this entry: then it is already there."""
        with self._engine.connect() as connection:
            if not self._has(connection, entry):
                raise conflict

    def _has(self, connection: Any, entry: Entry) -> bool:
        own = self._newest(connection, entry.key)
        if own is not None and own >= entry.batch:
            return True
        self._refuse_half(connection, entry)
        if entry.sink is None or own is not None or not entry.first:
            return False
        # The sink got its name later: its earlier batches have the query alone as their key.
        unnamed = self._newest(connection, entry.query)
        if unnamed is None or unnamed < entry.batch:
            return False
        self._insert(connection, entry.key, entry.batch, complete=True)
        return True

    def _newest(self, connection: Any, key: str) -> int | None:
        columns = self._table.c
        newest = _sqlalchemy().select(_sqlalchemy().func.max(columns.batch_id))
        found = connection.execute(
            newest.where(columns.query_id == key, columns.written_at.is_not(None))
        ).scalar()
        return None if found is None else int(found)

    def _refuse_half(self, connection: Any, entry: Entry) -> None:
        columns = self._table.c
        half = self._table.select().where(
            columns.query_id.in_([entry.key, entry.query]),
            columns.batch_id == entry.batch,
            columns.written_at.is_(None),
        )
        found = connection.execute(half).first()
        if found is not None:
            raise WouldLose(
                f"batch {entry.batch} is half written in the database",
                f"Its entry in {self._table.name} was begun and never completed: `write` itself "
                "committed, and the run ended before the batch did.",
                f"Remove the rows of batch {entry.batch}, then its entry, and start again: "
                f"DELETE FROM {self._table.name} WHERE query_id = '{found.query_id}' "  # nosec B608
                f"AND batch_id = {entry.batch}",
            )

    def _insert(self, connection: Any, key: str, batch: int, complete: bool) -> None:
        at = _now() if complete else None
        connection.execute(self._table.insert().values(query_id=key, batch_id=batch, written_at=at))

    def _complete(self, connection: Any, entry: Entry) -> None:
        columns = self._table.c
        begun = self._table.update().where(
            columns.query_id == entry.key,
            columns.batch_id == entry.batch,
            columns.written_at.is_(None),
        )
        if connection.execute(begun.values(written_at=_now())).rowcount != 1:
            raise _ended_by_write()

    def _prune(self, connection: Any, entry: Entry) -> None:
        columns = self._table.c
        connection.execute(
            self._table.delete().where(
                columns.query_id == entry.key, columns.batch_id < entry.batch - _LEDGER_KEEPS
            )
        )

    def _require_epoch(self, connection: Any, entry: Entry) -> None:
        """Refuse a run that another has superseded; lock the row until the transaction ends."""
        if not entry.epoch:
            return
        columns, sqlalchemy = self._table.c, _sqlalchemy()
        own = columns.query_id == entry.fence
        # An update locks the row everywhere; SQLite has no SELECT … FOR UPDATE.
        connection.execute(self._table.update().where(own).values(written_at=_now()))
        newest = sqlalchemy.select(sqlalchemy.func.max(columns.batch_id)).where(own)
        found = connection.execute(newest).scalar()
        if found is None:
            self._insert(connection, entry.fence, entry.epoch, complete=True)
        elif found > entry.epoch:
            raise Superseded(
                f"batch {entry.batch} was not written: another run has taken over the checkpoint",
                f"This run has number {entry.epoch}, and number {found} has already written to the "
                "database.",
                "Leave the other run alone, or stop it and start this one again.",
            )
        elif found < entry.epoch:
            moved = self._table.update().where(own, columns.batch_id == found)
            connection.execute(moved.values(batch_id=entry.epoch))

    def _require_transactions(self) -> None:
        """Test the database itself: what is rolled back must be gone."""
        probe = f"probe/{uuid.uuid4()}"
        columns = self._table.c
        own = columns.query_id == probe
        with self._engine.connect() as connection:
            with connection.begin() as transaction:
                self._insert(connection, probe, 0, complete=True)
                transaction.rollback()
            stayed = connection.execute(self._table.select().where(own)).first()
            if stayed is None:
                return
            connection.execute(self._table.delete().where(own))
            connection.commit()
        raise WrongUse(
            "once.sql: the database keeps what was rolled back",
            "The engine commits each statement separately (isolation_level AUTOCOMMIT), or the "
            "ledger's table has no transactions. Rows and entry would not become visible together.",
            "Give once.sql an engine without AUTOCOMMIT.",
        )


@contextlib.contextmanager
def _refused_commits(connection: Any) -> Iterator[None]:
    """Refuse commits and rollbacks by `write`, as the ledger does both; allow savepoints."""
    event = _sqlalchemy().event
    ended: list[str] = []

    def refuse(*_: Any) -> None:
        ended.append("ended")
        raise _ended_by_write()

    for name in ("commit", "rollback"):
        event.listen(connection, name, refuse)
    try:
        yield
    finally:
        for name in ("commit", "rollback"):
            event.remove(connection, name, refuse)
        if ended:
            # SQLAlchemy considers its transaction ended, so roll back in the database directly.
            connection.connection.rollback()
    if ended:  # and `write` caught the refusal
        raise _ended_by_write()


def _ended_by_write() -> WrongUse:
    return WrongUse(
        "`write` must not commit or roll back the connection that once.sql gave it",
        "The rows would become visible without the ledger's entry, and a crash would write them a "
        "second time. Nothing of the batch was written.",
        "Leave commit() and rollback() out: once.sql commits when `write` returns, and rolls back "
        "when it raises. connection.begin_nested() is a savepoint, and allowed.",
    )


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _sqlalchemy() -> Any:
    try:
        import sqlalchemy
    except ImportError:
        raise WrongUse(
            "sqlalchemy is not installed",
            "once.sql() writes to databases through SQLAlchemy.",
            "Install it: pip install 'floodmark[sql]'",
        ) from None
    return sqlalchemy
