"""Which statements of SQL a judging verb leaves out."""

from __future__ import annotations

import pytest

from floodmark.engine.app.effects.sql_text import changes_something, shortened


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "  -- INSERT INTO t\n select * from t where note = 'DROP TABLE t'",
        "/* DROP TABLE t */ WITH a AS (SELECT 1) SELECT * FROM a",
        "SHOW TABLES",
        "DESCRIBE EXTENDED t",
        "USE db",
        "SET spark.sql.shuffle.partitions = 4",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1",
        "CACHE TABLE t",
        "",
    ],
)
def test_reading(statement: str) -> None:
    assert not changes_something(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1)",
        "-- SELECT\nDELETE FROM t",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "FROM a INSERT INTO t SELECT *",
        "CREATE TABLE temp (id long)",
        "CREATE VIEW temporary AS SELECT 1",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN x long",
        "MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE",
        "OPTIMIZE t",
        "VACUUM t",
        "MSCK REPAIR TABLE t",
        "BEGIN DROP TABLE t; END",
    ],
)
def test_changing(statement: str) -> None:
    assert changes_something(statement)


def test_a_long_statement_is_shown_in_a_line() -> None:
    assert shortened("SELECT\n   1") == "SELECT 1"
    assert len(shortened("x" * 200)) == 70
