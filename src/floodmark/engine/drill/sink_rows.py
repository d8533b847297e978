"""Writes what the sinks of a run hold as JSON lines, one file for each sink."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.engine.drill.run_spec import ROWS, SinkNote
from floodmark.engine.sinks.ledger import LEDGER


def write_rows(spark: Any, folder: Path, notes: Iterable[SinkNote], database: str | None) -> None:
    (folder / ROWS).mkdir(exist_ok=True)
    for note in notes:
        if note.kind == "sqlite":
            rows: Iterable[str] = _sqlite_rows(Path(note.place))
        elif note.kind == "postgresql":
            assert database is not None
            rows = _postgres_rows(database)
        elif note.kind == "lines":
            rows = _lines(Path(note.place))
        else:
            rows = rows_of(spark, note)
        text = "".join(f"{row}\n" for row in rows)
        (folder / ROWS / Path(note.place).name).write_text(text, encoding="utf-8")


def rows_of(spark: Any, note: SinkNote) -> list[str]:
    """Return the rows of a table or a folder of files, as its readers see them."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    if not _has_data(Path(note.place), note.kind):
        return []
    reader = spark.read.format(note.kind).options(**note.options)
    if note.schema is not None:
        reader = reader.schema(StructType.fromJson(json.loads(note.schema)))
    frame = reader.load(note.place)
    shown = F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row")
    return [str(one["row"]) for one in frame.select(shown).collect()]


def _has_data(place: Path, kind: str) -> bool:
    """Whether there is anything to read: a write that died midway leaves folders without data."""
    if kind == "delta":
        return any(place.glob(f"{TABLE_LOG}/*.json"))
    return any(
        one.is_file()
        and not any(part.startswith(("_", ".")) for part in one.relative_to(place).parts)
        for one in place.rglob("*")
    )


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    return [json.dumps({"line": line}) for line in text.splitlines()]


def _sqlite_rows(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        for name, made in tables.fetchall():
            if name == LEDGER or name.startswith("sqlite_"):
                continue
            quoted = '"' + name.replace('"', '""') + '"'
            # Numbers that the database generates are not part of the row.
            counted = "autoincrement" in made.lower()
            columns = [
                one[1]
                for one in connection.execute(f"PRAGMA table_info({quoted})")
                if not (counted and one[5] and str(one[2]).upper() == "INTEGER")
            ]
            yield from _rows(connection.execute, name, quoted, columns)


def _postgres_rows(database: str) -> Iterator[str]:
    import psycopg

    told = urlsplit(database)
    with psycopg.connect(
        host=told.hostname,
        port=told.port,
        user=told.username,
        password=unquote(told.password) if told.password else None,
        dbname=told.path[1:],
    ) as connection:
        tables = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = "
            "'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 2"
        ).fetchall()
        for schema, name in tables:
            if name == LEDGER:
                continue
            columns = connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND "
                "table_name = %s AND is_identity = 'NO' AND coalesce(column_default, '') NOT LIKE "
                "'nextval(%%' ORDER BY ordinal_position",
                (schema, name),
            ).fetchall()
            quoted = ".".join('"' + one.replace('"', '""') + '"' for one in (schema, name))
            yield from _rows(
                lambda text: connection.execute(text.encode()),
                name,
                quoted,
                [c for (c,) in columns],
            )


def _rows(execute: Any, name: str, quoted: str, columns: list[str]) -> Iterator[str]:
    if not columns:
        return
    listed = ", ".join('"' + one.replace('"', '""') + '"' for one in columns)
    for values in execute(f"SELECT {listed} FROM {quoted}"):  # nosec B608 - quoted names alone
        row = dict(zip(columns, values, strict=True))
        yield json.dumps({"table": name, **row}, default=str)
