"""Redirects a drilled pipeline's databases: copies SQLite files, uses the PostgreSQL copy.

file_doors.py refuses any other connection that Python code opens.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from floodmark.engine.app.patching import Patches
from floodmark.engine.drill.doors.places import Places
from floodmark.engine.drill.killing.marks import Marks
from floodmark.engine.drill.run_spec import SinkNote
from floodmark.errors import WrongUse

_CHANGING = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|MERGE|COPY|WITH)\b", re.IGNORECASE)
_POSTGRES = ("psycopg", "psycopg2")


class SqlDoors:
    def __init__(self, places: Places, marks: Marks, database: str | None) -> None:
        self._places = places
        self._marks = marks
        self._database = database

    def install(self, patches: Patches) -> None:
        connect = self._sqlite(sqlite3.connect)
        patches.set(sqlite3, "connect", connect)
        patches.set(sqlite3.dbapi2, "connect", connect)
        for name in _POSTGRES:
            if importlib.util.find_spec(name) is not None:
                module = importlib.import_module(name)
                patches.set(module, "connect", self._postgres(module.connect, name))
        if importlib.util.find_spec("psycopg") is not None:
            self._count_psycopg(patches)
            self._own_connections(patches)

    def jdbc(self, url: str) -> str:
        """Return the copy's address instead of a JDBC address."""
        if not url.startswith("jdbc:postgresql:"):
            raise _not_seen(url.split("//")[0] or "a database")
        told = urlsplit(self._require("JDBC"))
        user = f"?user={told.username}&password={told.password or ''}" if told.username else ""
        return f"jdbc:postgresql://{told.hostname}:{told.port or 5432}{told.path}{user}"

    def _sqlite(self, original: Any) -> Any:
        marks = self._marks

        class Cursor(sqlite3.Cursor):
            def execute(self, sql: str, *given: Any) -> Any:
                found = super().execute(sql, *given)
                return _told(marks, sql, found)

            def executemany(self, sql: str, *given: Any) -> Any:
                found = super().executemany(sql, *given)
                return _told(marks, sql, found)

        class Connection(sqlite3.Connection):
            def cursor(self, factory: Any = Cursor) -> Any:
                return super().cursor(factory)

            def execute(self, sql: str, *given: Any) -> Any:
                return self.cursor().execute(sql, *given)

            def executemany(self, sql: str, *given: Any) -> Any:
                return self.cursor().executemany(sql, *given)

            def commit(self) -> None:
                super().commit()
                if marks.batch is not None:
                    marks.wrote()

        def connect(database: Any, *given: Any, **named: Any) -> Any:
            path = _path_of(database)
            if path is not None:
                own = self._places.of_database(path)
                if not Path(path).is_relative_to(self._places.folder):
                    self._copy(path, own, original)
                    self._places.note(SinkNote(path, str(own), "sqlite", by="function"))
                    database, named = str(own), {**named, "uri": False}
            if len(given) < 5:
                named.setdefault("factory", Connection)
            return original(database, *given, **named)

        return connect

    def _copy(self, real: str, own: Path, connect: Any) -> None:
        """Copy the database in its present state, once for this run."""
        own.parent.mkdir(exist_ok=True)
        if own.exists() or not Path(real).is_file():
            return
        source, goal = connect(f"file:{real}?mode=ro", uri=True), connect(str(own) + ".new")
        try:
            source.backup(goal)
        finally:
            source.close()
            goal.close()
        Path(str(own) + ".new").rename(own)

    def _postgres(self, original: Any, name: str) -> Any:
        def connect(*given: Any, **named: Any) -> Any:
            told = urlsplit(self._require(name))
            kept = {
                key: value
                for key, value in named.items()
                if key in ("autocommit", "row_factory", "context", "connection_factory")
            }
            self._places.note(SinkNote("postgresql", told.path[1:], "postgresql", by="function"))
            parts = {
                "host": told.hostname,
                "port": told.port,
                "user": told.username,
                "password": unquote(told.password) if told.password else None,
                "dbname": told.path[1:],
            }
            return original(**{key: one for key, one in parts.items() if one}, **kept)

        return connect

    def _count_psycopg(self, patches: Patches) -> None:
        import psycopg

        def counting(original: Any) -> Any:
            def execute(cursor: Any, query: Any, *given: Any, **named: Any) -> Any:
                found = original(cursor, query, *given, **named)
                return _told(self._marks, query, found)

            return execute

        def committing(original: Any) -> Any:
            def commit(connection: Any) -> None:
                original(connection)
                if self._marks.batch is not None:
                    self._marks.wrote()

            return commit

        patches.wrap(psycopg.Cursor, "execute", counting)
        patches.wrap(psycopg.Cursor, "executemany", counting)
        patches.wrap(psycopg.Connection, "commit", committing)

    def _own_connections(self, patches: Patches) -> None:
        """Redirect pools and code that use the class, which do not call the module's `connect`."""
        import psycopg

        connect = self._postgres(psycopg.Connection.connect, "psycopg")
        patches.set(psycopg.Connection, "connect", staticmethod(connect))

        def refuse(*_given: Any, **_named: Any) -> Any:
            raise _not_seen("PostgreSQL by asyncio")

        patches.set(psycopg.AsyncConnection, "connect", staticmethod(refuse))

    def _require(self, by: str) -> str:
        if self._database is None:
            raise _not_seen(f"a PostgreSQL database ({by})")
        return self._database


def _told(marks: Marks, statement: Any, found: Any) -> Any:
    text = statement.decode(errors="replace") if isinstance(statement, bytes) else str(statement)
    if marks.batch is not None and _CHANGING.match(text):
        marks.wrote()
    return found


def is_in_memory(database: Any) -> bool:
    return _path_of(database) is None


def _path_of(database: Any) -> str | None:
    """Return a database file's path; None for a database in memory."""
    text = os.fsdecode(database) if isinstance(database, bytes | os.PathLike) else str(database)
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path) if "mode=memory" not in text else ""
    if text in ("", ":memory:"):
        return None
    return str(Path(text).absolute())


def _not_seen(words: str) -> WrongUse:
    return WrongUse(
        f"the pipeline writes to {words}, and no --sink names a test database",
        "A drill never connects to the pipeline's own database.",
        "Give --sink postgresql://USER@HOST/DATABASE: a test database with the tables that the "
        "pipeline writes to. The drill works on copies of it.",
    )
