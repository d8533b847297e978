"""A table `sold` of batches, for tests of the ledger beside it."""

from __future__ import annotations

from typing import Any

import sqlalchemy


def create_sold(engine: Any, kind: str = "INTEGER") -> None:
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE TABLE sold (batch {kind})"))


def insert(batch: int) -> Any:
    statement = sqlalchemy.text(f"INSERT INTO sold VALUES ({batch})")
    return lambda connection: connection.execute(statement)


def sold(engine: Any) -> list[int]:
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text("SELECT batch FROM sold ORDER BY batch"))
        return [row[0] for row in found]
