"""Builds flows from a declarative pipeline's SQL: which statement, and whether it reads a STREAM.

This is not an SQL parser: strings and comments are blanked, and the rest is found by words. What
the words do not show is `unknown`, which no rule judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.rules.code.facts import DefinedFlow

_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_BLANKED = re.compile(rf"--[^\n]*|/\*.*?\*/|{_TEXT}|`[^`\n]*`", re.DOTALL)
_HEADS = {
    "table": re.compile(
        r"\s*CREATE\s+(OR\s+REFRESH\s+)?STREAMING\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.]+)",
        re.IGNORECASE,
    ),
    "materialized_view": re.compile(
        r"\s*CREATE\s+(OR\s+REFRESH\s+)?MATERIALIZED\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.]+)",
        re.IGNORECASE,
    ),
    "append_flow": re.compile(r"\s*CREATE\s+()FLOW\s+([\w.]+)", re.IGNORECASE),
}
_STATEMENTS = {
    "table": "CREATE STREAMING TABLE",
    "materialized_view": "CREATE MATERIALIZED VIEW",
    "append_flow": "CREATE FLOW",
}
_QUERY = re.compile(r"\bAS\b", re.IGNORECASE)
_CHANGES = re.compile(r"\bAUTO\s+CDC\b", re.IGNORECASE)
_READS_STREAM = re.compile(r"\b(?:FROM|JOIN)[\s(]+STREAM\s*[\w(]", re.IGNORECASE)
_MAY_STREAM = re.compile(r"\bSTREAM\b|\b(?:FROM|JOIN)\s+[\w.]+\s*\(", re.IGNORECASE)


def sql_flows(text: str) -> tuple[DefinedFlow, ...]:
    return tuple(_flows(text))


def _flows(text: str) -> Iterator[DefinedFlow]:
    plain = _BLANKED.sub(_blank, text)
    start = 0
    for statement in plain.split(";"):
        for kind, head in _HEADS.items():
            found = head.match(statement)
            if found:
                name = text[start + found.start(2) : start + found.end(2)]
                first = start + len(statement) - len(statement.lstrip())
                line = text.count("\n", 0, first) + 1
                reads = _reads(statement[found.end() :])
                yield DefinedFlow(kind, name, line, reads, bool(found[1]), _STATEMENTS[kind])
        start += len(statement) + 1


def _reads(rest: str) -> frozenset[str]:
    query = _QUERY.search(rest)
    if query is None or _CHANGES.search(rest):
        return frozenset({"unknown"})  # a table that flows fill, or that receives changes
    if _READS_STREAM.search(rest, query.end()):
        return frozenset({"stream"})
    return frozenset({"unknown" if _MAY_STREAM.search(rest, query.end()) else "batch"})


def _blank(found: re.Match[str]) -> str:
    """Blank a text but keep its length, so that positions stay; a quoted name stays a word."""
    if found[0].startswith("`"):
        return "_" * len(found[0])
    return re.sub(r"[^\n]", " ", found[0])
