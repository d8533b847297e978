"""Decides from the words of a SQL statement whether it changes anything; runs nothing."""

from __future__ import annotations

import re

_COMMENT_OR_STRING = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:\\.|''|[^'\\])*'|\"(?:\\.|\"\"|[^\"\\])*\"|`(?:``|[^`])*`", re.DOTALL
)
_WORD = re.compile(r"[A-Za-z_]+")
_READING = frozenset(
    {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "SHOW", "DESCRIBE", "DESC"}
    | {"EXPLAIN", "LIST", "USE", "SET", "RESET", "DECLARE", "CACHE", "UNCACHE", "REFRESH", "ADD"}
)
_CHANGING = frozenset({"INSERT", "MERGE", "UPDATE", "DELETE"})
_TEMPORARY = frozenset({"TEMP", "TEMPORARY"})


def changes_something(statement: str) -> bool:
    """Whether a statement may change anything: true unless it is known to read only."""
    words = [word.upper() for word in _WORD.findall(_COMMENT_OR_STRING.sub(" x ", statement))]
    while words and words[0] == "X":  # where a comment stood
        words.pop(0)
    if not words:
        return False
    first = words[0]
    if first in ("WITH", "FROM"):  # WITH … INSERT INTO, FROM … INSERT INTO
        return not _CHANGING.isdisjoint(words)
    if first in ("CREATE", "DROP"):
        rest = [word for word in words[1:5] if word not in ("OR", "REPLACE", "GLOBAL")]
        return not rest or rest[0] not in _TEMPORARY
    return first not in _READING


def shortened(statement: str, longest: int = 70) -> str:
    one_line = " ".join(statement.split())
    return one_line if len(one_line) <= longest else one_line[: longest - 1] + "…"
