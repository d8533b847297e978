"""Copies the test database that --sink names, once for each run, and drops the copies.

PostgreSQL makes the copies (CREATE DATABASE … TEMPLATE …); the named database is only read.
"""

from __future__ import annotations

import importlib.util
import secrets
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from floodmark.addresses import public_url
from floodmark.errors import NoAnswer, WrongUse

_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2")


class Databases:
    def __init__(self, given: str | None) -> None:
        self._given = None if given is None else _parsed(given)
        self._made: list[str] = []

    def __enter__(self) -> Databases:
        if self._given is not None:
            self._run("SELECT 1", self._given.path[1:])
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._made:
            self._run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', "postgres")

    def new(self) -> str | None:
        """Return the address of a new copy; None where there is no database to copy."""
        if self._given is None:
            return None
        name = f"floodmark_drill_{secrets.token_hex(6)}"
        template = unquote(self._given.path[1:]).replace('"', '""')
        self._run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"', "postgres")
        self._made.append(name)
        return self._given._replace(scheme="postgresql", path=f"/{name}", query="").geturl()

    def _run(self, statement: str, database: str) -> None:
        import psycopg

        told = self._given
        assert told is not None
        try:
            with psycopg.connect(
                host=told.hostname,
                port=told.port,
                user=told.username,
                password=unquote(told.password) if told.password else None,
                dbname=database,
                autocommit=True,
                connect_timeout=10,
            ) as connection:
                connection.execute(statement.encode())
        except psycopg.Error as error:
            raise NoAnswer(
                f"--sink {public_url(told.geturl())}: {_first_line(error)}",
                "The drill copies the test database once for each run.",
                "The user needs the right to create databases, and nobody else may be connected "
                "to the named database during the drill.",
            ) from None


def _first_line(error: Any) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _parsed(given: str) -> SplitResult:
    told = urlsplit(given.removeprefix("jdbc:"))
    if told.scheme not in _SCHEMES or not told.hostname or not told.path.strip("/"):
        raise WrongUse(
            f"--sink {public_url(given)} is not a PostgreSQL database",
            "The drill sees files, Delta tables and SQLite without this option.",
            "Write it as --sink postgresql://USER@HOST:PORT/DATABASE.",
        )
    if importlib.util.find_spec("psycopg") is None:
        raise WrongUse(
            "--sink needs psycopg, which is not installed", do="pip install 'psycopg[binary]'"
        )
    return told
