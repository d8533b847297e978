"""Keeps the history in a small SQLite file, so that trends outlive the logs and the query.

It has one sample a minute for a day, then one for each ten minutes, until the retention ends.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from floodmark.errors import CannotRead
from floodmark.fleet.retention import PartSample

_VERSION = 2
_FINE_MS = 86_400_000
_COARSE_MS = 600_000
PARTS_KEPT_MS = 6 * 3_600_000
"""The limit for positions by partition: there are many, and only recent speed needs them."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS samples (
  checkpoint TEXT NOT NULL, at_ms INTEGER NOT NULL, committed INTEGER, records INTEGER,
  bytes INTEGER, behind_ms INTEGER, state_bytes INTEGER, watermark_ms INTEGER,
  PRIMARY KEY (checkpoint, at_ms)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS parts (
  checkpoint TEXT NOT NULL, at_ms INTEGER NOT NULL, source TEXT NOT NULL, part TEXT NOT NULL,
  position INTEGER NOT NULL, end INTEGER, earliest INTEGER,
  PRIMARY KEY (checkpoint, at_ms, source, part)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
  checkpoint TEXT NOT NULL, batch INTEGER NOT NULL, committed_ms INTEGER NOT NULL,
  planned_ms INTEGER, PRIMARY KEY (checkpoint, batch)) WITHOUT ROWID;
"""
_KEYS = {
    "samples": ("at_ms", "at_ms"),
    "batches": ("batch", "committed_ms"),
    "parts": ("", "at_ms"),
}
"""The columns of each table that number its rows and have their times."""
_FROM_VERSION_1 = "ALTER TABLE batches ADD COLUMN planned_ms INTEGER"


@dataclass(frozen=True)
class Sample:
    at_ms: int
    committed: int | None
    records: int | None
    bytes: int | None
    behind_ms: int | None
    state_bytes: int | None
    watermark_ms: int | None


@dataclass(frozen=True)
class BatchSample:
    batch: int
    committed_ms: int
    planned_ms: int | None = None
    """None: the batch was already planned when it was first seen."""


class History:
    """Stores the history, safe for threads: one connection, one lock."""

    def __init__(self, path: Path | None, retention_ms: int) -> None:
        """Open the history; without a path it ends with the process."""
        self.path = path
        self._retention_ms = retention_ms
        self._lock = threading.Lock()
        self._thinned_ms = 0
        self.problem: str | None = None
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.touch(mode=0o600)
            self._db = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=5)
            with self._db:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                found = self._db.execute("PRAGMA user_version").fetchone()[0]
                if found > _VERSION:
                    raise sqlite3.DatabaseError(f"its version is {found}; this reads {_VERSION}")
                self._db.executescript(_SCHEMA)
                if found == 1:
                    self._db.execute(_FROM_VERSION_1)
                self._db.execute(f"PRAGMA user_version={_VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise CannotRead(
                f"{path}: the history cannot be kept there",
                str(error),
                "Name another file with --history FILE, or --no-history.",
            ) from None

    def add(self, samples: Iterable[tuple[str, Sample]]) -> None:
        rows = [(checkpoint, *astuple(sample)) for checkpoint, sample in samples]
        self._write("INSERT OR REPLACE INTO samples VALUES (?,?,?,?,?,?,?,?)", rows)

    def add_parts(self, checkpoint: str, parts: Iterable[PartSample]) -> None:
        rows = [
            (checkpoint, one.at_ms, one.source, one.part, one.position, one.end, one.earliest)
            for one in parts
        ]
        self._write("INSERT OR REPLACE INTO parts VALUES (?,?,?,?,?,?,?)", rows)

    def add_batches(self, batches: Iterable[tuple[str, BatchSample]]) -> None:
        rows = [(checkpoint, *astuple(batch)) for checkpoint, batch in batches]
        self._write("INSERT OR REPLACE INTO batches VALUES (?,?,?,?)", rows)

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Write rows; a full disk ends the history, but not the page."""
        if not rows:
            return
        try:
            with self._lock, self._db:
                self._db.executemany(statement, rows)
            self.problem = None
        except (sqlite3.Error, OverflowError) as error:
            self.problem = f"The history cannot be written: {error}"

    def samples(self, checkpoint: str, since_ms: int = 0, most: int = 2000) -> tuple[Sample, ...]:
        rows = self._read(
            "SELECT at_ms, committed, records, bytes, behind_ms, state_bytes, watermark_ms FROM "
            "samples WHERE checkpoint = ? AND at_ms >= ? ORDER BY at_ms DESC LIMIT ?",
            (checkpoint, since_ms, most),
        )
        return tuple(Sample(*row) for row in reversed(rows))

    def first_parts(self, checkpoint: str, since_ms: int) -> list[PartSample]:
        """Return the oldest sample of each partition since a time."""
        rows = self._read(
            "SELECT min(at_ms), source, part, position, end, earliest FROM parts "
            "WHERE checkpoint = ? AND at_ms >= ? GROUP BY source, part",
            (checkpoint, since_ms),
        )
        return [PartSample(*row) for row in rows]

    def batches(
        self, checkpoint: str, since_ms: int = 0, most: int = 2000
    ) -> tuple[BatchSample, ...]:
        rows = self._read(
            "SELECT batch, committed_ms, planned_ms FROM batches "
            "WHERE checkpoint = ? AND committed_ms >= ? ORDER BY batch DESC LIMIT ?",
            (checkpoint, since_ms, most),
        )
        return tuple(BatchSample(*row) for row in reversed(rows))

    def _read(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self.problem = f"The history cannot be read: {error}"
            return []

    def prune(self, now_ms: int) -> None:
        """Thin out samples older than a day, and remove those older than the retention.

        Each checkpoint takes only a moment, so that others can write and read between them.
        """
        fine = now_ms - _FINE_MS
        try:
            for table, (key, at) in _KEYS.items():
                kept_ms = PARTS_KEPT_MS if table == "parts" else self._retention_ms
                for checkpoint in self._checkpoints(table):
                    with self._lock, self._db:
                        self._db.execute(
                            f"DELETE FROM {table} WHERE checkpoint = ? AND {at} < ?",  # nosec B608
                            (checkpoint, now_ms - kept_ms),
                        )
                        if table != "parts":
                            self._thin_out(table, key, at, checkpoint, fine)
            self._thinned_ms = fine
        except sqlite3.Error as error:
            self.problem = f"The history cannot be thinned out: {error}"

    def _checkpoints(self, table: str) -> Iterator[str]:
        """Yield the checkpoints by steps through the index: listing all rows would take long."""
        found: str | None = ""
        while True:
            with self._lock:
                [(found,)] = self._db.execute(
                    f"SELECT min(checkpoint) FROM {table} WHERE checkpoint > ?",  # nosec B608
                    (found,),
                )
            if found is None:
                return
            yield found

    def _thin_out(self, table: str, key: str, at: str, checkpoint: str, fine: int) -> None:
        """Keep the first row of each ten minutes; thinned rows are not visited again."""
        since = self._thinned_ms - self._thinned_ms % _COARSE_MS
        rows = self._db.execute(
            f"SELECT {key}, {at} FROM {table} WHERE checkpoint = ? AND {at} >= ? "  # nosec B608
            f"AND {at} < ? ORDER BY {key}",
            (checkpoint, since, fine),
        ).fetchall()
        surplus = [
            (checkpoint, found)
            for (_, before), (found, after) in pairwise(rows)
            if before // _COARSE_MS == after // _COARSE_MS
        ]
        self._db.executemany(
            f"DELETE FROM {table} WHERE checkpoint = ? AND {key} = ?",  # nosec B608
            surplus,
        )

    def close(self) -> None:
        with self._lock:
            self._db.close()
