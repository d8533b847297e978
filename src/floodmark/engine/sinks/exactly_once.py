"""Sinks for foreachBatch that write each batch exactly once.

Spark runs a batch again when it died before the commit, so a sink may get the same batch
twice. A sink with transactions can recognise it: it records (query, sink, batch) in the
transaction that holds the batch's rows, and skips a batch that is already recorded.

    writer.foreachBatch(once.delta("data/orders"))
    writer.foreachBatch(once.iceberg("lake.db.orders"))
    writer.foreachBatch(once.sql("postgresql+psycopg://…", write))

Two sinks of one foreachBatch in one database, or on one table, need names: `name="totals"`.
A run that another run has superseded writes nothing more: the sink checks its lease before each
batch, and again inside the transaction.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from floodmark.connectors.iceberg.table_metadata import EPOCH, QUERY_ID
from floodmark.engine.sinks.ledger import LEDGER, Entry, Ledger
from floodmark.engine.start.lease import Lease, NoLease, held_lease
from floodmark.errors import FloodmarkError, Superseded, WrongUse
from floodmark.storage.files import place_name

_STREAM_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"
_LEASE = "floodmark.lease.run"
_FORK = "floodmark.fork"

BatchFunction = Callable[[Any, int], None]


def query_id(batch: Any) -> str:
    """Return the id of the query whose foreachBatch this is; restarts keep it."""
    found = batch.sparkSession.sparkContext.getLocalProperty(_STREAM_ID)
    if not found:
        raise WrongUse(
            "this is not inside a query's foreachBatch",
            "The query's id distinguishes its batches from another query's.",
            "Pass the function to writer.foreachBatch().",
        )
    return str(found)


@contextlib.contextmanager
def told_to_sinks(spark: Any, lease: Lease | NoLease) -> Iterator[None]:
    """Let a query that starts in here find its lease in each of its batches."""
    spark.sparkContext.setLocalProperty(_LEASE, lease.run)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty(_LEASE, None)


@contextlib.contextmanager
def on_a_fork(spark: Any) -> Iterator[None]:
    """Mark a query that starts in here as a trial: these sinks keep nothing of its batches."""
    spark.sparkContext.setLocalProperty(_FORK, "true")
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty(_FORK, None)


@dataclass(frozen=True)
class _Turn:
    """One batch of one run of a query."""

    query: str
    run: str
    batch: int
    lease: Lease | None
    on_fork: bool = False

    @staticmethod
    def of(batch: Any, batch_id: int) -> _Turn:
        asked = batch.sparkSession.sparkContext.getLocalProperty
        query, lease = query_id(batch), held_lease(asked(_LEASE))
        run = f"{asked(_RUN_ID)} {lease.run if lease else ''}"
        return _Turn(query, run, batch_id, lease, asked(_FORK) == "true")

    def require_lease(self) -> None:
        if self.lease is None:
            return
        try:
            self.lease.require()
        except Superseded:
            raise
        except FloodmarkError:  # the storage does not answer; the sink's own check follows
            return


class _Uses:
    """Remembers which sinks got the running batch of each query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: dict[tuple[str, str], tuple[int, set[tuple[str, str | None]]]] = {}

    def note(self, turn: _Turn, place: str, name: str | None, words: str) -> bool:
        """Return True for the first sink at this place; refuse two that look the same."""
        with self._lock:
            batch, used = self._batches.get((turn.query, turn.run), (turn.batch, set()))
            if batch != turn.batch:
                used = set()
            if (place, name) in used:
                raise _twice(words, name)
            first = all(other != place for other, _ in used)
            self._batches[turn.query, turn.run] = (turn.batch, used | {(place, name)})
            return first


_uses = _Uses()


def _twice(words: str, name: str | None) -> WrongUse:
    called = "without a name" if name is None else f"with the name {name!r}"
    return WrongUse(
        f"{words} is used twice in one batch {called}",
        "A batch is recorded by its query, its number and the sink's name. The second use would "
        "look like the first, and its rows would be left out.",
        'Give each sink its own name: name="totals". What the first one wrote without a name still '
        "counts for the first sink of the batch.",
    )


@dataclass(frozen=True)
class _Table:
    """A table whose own log says which batches it has."""

    format: str
    target: str
    """The path or name that Spark saves to."""
    place: Callable[[], str]
    """Returns the table's name among the tables of a batch."""
    words: str
    """The user's call, for messages."""
    newest: Callable[[Any, _Turn, bool], int]
    """Returns the table's newest batch, from batch, turn, and whether this is its first sink."""
    marks: Callable[[_Turn, int], dict[str, Any]]
    """Returns options of the writer that record the batch with its rows."""


def _written_once(
    table: _Table,
    transform: Callable[[Any], Any] | None,
    name: str | None,
    mode: str,
    options: dict[str, str],
) -> BatchFunction:
    _require_name(name)
    begun: dict[str, tuple[str, int]] = {}
    """The run of each query, and the newest batch in the table when the run began."""

    def write(batch: Any, batch_id: int) -> None:
        turn = _Turn.of(batch, batch_id)
        first = _uses.note(turn, table.place(), name, table.words)
        run, newest = begun.get(turn.query, ("", -1))
        if run != turn.run:
            # A batch that died after its write; or several, after a rewind with the same id.
            newest = table.newest(batch, turn, first)
            begun[turn.query] = turn.run, newest
        if batch_id <= newest:
            _compute_only(batch)
            return
        rows = batch if transform is None else transform(batch)
        if turn.on_fork:
            _compute_only(rows)
            return
        writer = rows.write.format(table.format).mode(mode).options(**options)
        for key, value in table.marks(turn, batch_id).items():
            writer = writer.option(key, value)
        turn.require_lease()
        writer.save(table.target)

    return write


def delta(
    path: str,
    transform: Callable[[Any], Any] | None = None,
    *,
    name: str | None = None,
    mode: str = "append",
    **options: str,
) -> BatchFunction:
    """Write each batch to the Delta table at a path; `transform` changes the batch's rows first.

    The table's own log holds the query and the batch (`txn`), so several queries can write to one
    table. One query can write to it several times, with a `name` for each.
    """

    def newest(batch: Any, turn: _Turn, first: bool) -> int:
        return _newest_in_table(batch, path, turn, name, first)

    def marks(turn: _Turn, batch_id: int) -> dict[str, Any]:
        # Delta compares them: of two commits with the same txnAppId, the later one fails.
        return {"txnAppId": _application(turn, name), "txnVersion": batch_id}

    def place() -> str:
        return f"table {place_name(path)}"

    table = _Table("delta", path, place, f'once.delta("{path}")', newest, marks)
    return _written_once(table, transform, name, mode, options)


def iceberg(
    table: str,
    transform: Callable[[Any], Any] | None = None,
    *,
    name: str | None = None,
    mode: str = "append",
    **options: str,
) -> BatchFunction:
    """Write each batch to an Iceberg table, by its name or path; `transform` changes rows first.

    The batch's snapshot holds the query and the batch, as with Iceberg's own sink. When a snapshot
    expires, its batch is forgotten. Iceberg does not refuse a second writer: the lease of
    `floodmark run` does.
    """

    def newest(batch: Any, turn: _Turn, first: bool) -> int:
        return _newest_in_snapshots(batch.sparkSession, table, _application(turn, name))

    def marks(turn: _Turn, batch_id: int) -> dict[str, Any]:
        noted = {QUERY_ID: _application(turn, name), EPOCH: batch_id}
        return {f"snapshot-property.{key}": value for key, value in noted.items()}

    words = f'once.iceberg("{table}")'
    written = _Table("iceberg", table, lambda: f"table {table}", words, newest, marks)
    return _written_once(written, transform, name, mode, options)


def _newest_in_snapshots(spark: Any, table: str, application: str) -> int:
    """Return the newest batch in the snapshots that lead to the current one, or -1."""
    from pyspark.sql import functions

    def told(what: str) -> Any:
        by_path = "/" in table
        return spark.read.format("iceberg").load(f"{table}{'#' if by_path else '.'}{what}")

    def noted(key: str) -> Any:
        summary = functions.col("summary")
        # Iceberg's own sink writes the key unchanged; Spark writes options in lower case.
        return functions.coalesce(summary[key], summary[key.lower()])

    current = told("history").where("is_current_ancestor").select("snapshot_id")
    batches = (
        told("snapshots")
        .where(noted(QUERY_ID) == application)
        .join(current, "snapshot_id", "left_semi")
        .agg(functions.max(noted(EPOCH).cast("long")))
    )
    [[newest]] = batches.collect()
    return -1 if newest is None else int(newest)


def _application(turn: _Turn, name: str | None) -> str:
    return turn.query if name is None else f"{turn.query}/{name}"


def _newest_in_table(batch: Any, path: str, turn: _Turn, name: str | None, first: bool) -> int:
    """Return the newest batch in the table's log, or -1; if it cannot be read, Delta decides."""
    recorded = _recorded(batch, path)
    own = recorded(_application(turn, name))
    if own is None and name is not None and first:
        own = recorded(turn.query)  # from the time before the sink had its name
    return -1 if own is None else own


def _recorded(batch: Any, path: str) -> Callable[[str], int | None]:
    from py4j.protocol import Py4JError

    spark = batch.sparkSession
    try:
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
        transactions = log.unsafeVolatileSnapshot().transactions()
    except (Py4JError, TypeError):  # TypeError: this Delta has no such class
        return lambda application: None

    def newest(application: str) -> int | None:
        found = transactions.get(application)
        return int(found.get()) if found.isDefined() else None

    return newest


def _compute_only(batch: Any) -> None:
    """Compute a batch that the sink already has: this run must still write its state.

    Since 4.1 Spark ends a stateful query whose foreachBatch left the batch unread
    (STATE_STORE_COMMIT_VALIDATION_FAILED), and the watermark moves only with rows that are read.
    """
    batch.write.format("noop").mode("overwrite").save()


def sql(
    target: Any,
    write: Callable[[Any, Any, int], None],
    *,
    name: str | None = None,
    ledger: str = LEDGER,
) -> BatchFunction:
    """Call `write(connection, batch, batch_id)` inside one transaction with the ledger's entry.

    `target` is an SQLAlchemy URL or Engine. What `write` changes with the connection becomes
    visible together with the entry, or not at all; `write` itself must not commit.
    """
    _require_name(name)
    books: list[Ledger] = []

    def write_once(batch: Any, batch_id: int) -> None:
        turn = _Turn.of(batch, batch_id)
        if not books:  # only at the first batch: a pipeline is built without a database
            books.append(Ledger(target, ledger))
        if turn.on_fork:
            books[0].try_out(lambda at: write(at, batch, batch_id))
            return
        first = _uses.note(turn, books[0].place, name, "once.sql on this database")
        turn.require_lease()
        lease = turn.lease
        fence = (lease.chain, lease.epoch) if lease else ("", 0)
        entry = Entry(turn.query, batch_id, name, first, *fence)
        if not books[0].write(entry, lambda at: write(at, batch, batch_id)):
            _compute_only(batch)

    return write_once


def _require_name(name: str | None) -> None:
    if name is not None and not name.strip():
        raise WrongUse("a sink's name is empty", do='Write name="totals", or leave it out.')


class Once:
    """Groups the sinks under the name that pipelines use: `from floodmark import once`."""

    delta = staticmethod(delta)
    iceberg = staticmethod(iceberg)
    sql = staticmethod(sql)
    query_id = staticmethod(query_id)


once = Once()
