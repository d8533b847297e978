"""Parses schemas as people write them: `name STRING, window STRUCT<start: TIMESTAMP>`.

It parses what keys and values of a state need.
"""

from __future__ import annotations

import re

from floodmark.checkpoint.text import shorten
from floodmark.errors import WrongUse
from floodmark.state.rows.types import Array, DataType, Field, Map, Struct, parse_name, render_json

_TOKEN = re.compile(r"`((?:[^`]|``)*)`|([A-Za-z_]\w*)|(\d+)|([<>(),:])")
_NAMES = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}


def struct_json(text: str) -> str:
    """Return Spark's JSON of a schema that is given as JSON or as DDL."""
    if text.lstrip().startswith("{"):
        return text
    return render_json(parse_ddl(text))


def parse_ddl(text: str) -> Struct:
    reader = _Tokens(text)
    fields = [_field(reader)]
    while reader.accept(","):
        fields.append(_field(reader))
    reader.end()
    return Struct(tuple(fields))


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.quoted: list[bool] = []
        at = 0
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(text[at : at + 10])
            self.quoted.append(found[1] is not None)
            self.tokens.append(found[1].replace("``", "`") if found[1] is not None else found[0])
            at = found.end()
        self.at = 0

    def wrong(self, near: str) -> WrongUse:
        return WrongUse(
            f"not a schema, near {shorten(near)!r}: {shorten(self.text, 200)}",
            do="Write it as: name STRING, total DECIMAL(10,2), tags ARRAY<STRING>",
        )

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        if not token:
            raise self.wrong("its end")
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek().lower() == token and not self.quoted[self.at]:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.wrong(self.peek() or "its end")

    def end(self) -> None:
        if self.peek():
            raise self.wrong(self.peek())


def _field(reader: _Tokens) -> Field:
    name = reader.next()
    reader.accept(":")
    kind = _type(reader)
    nullable = True
    if reader.accept("not"):
        reader.expect("null")
        nullable = False
    return Field(name, kind, nullable)


def _type(reader: _Tokens) -> DataType:
    word = reader.next().lower()
    if word == "struct":
        reader.expect("<")
        fields = [_field(reader)]
        while reader.accept(","):
            fields.append(_field(reader))
        reader.expect(">")
        return Struct(tuple(fields))
    if word == "array":
        reader.expect("<")
        element = _type(reader)
        reader.expect(">")
        return Array(element)
    if word == "map":
        reader.expect("<")
        key = _type(reader)
        reader.expect(",")
        value = _type(reader)
        reader.expect(">")
        return Map(key, value)
    return _named_type(reader, _NAMES.get(word, word))


def _named_type(reader: _Tokens, word: str) -> DataType:
    if word == "interval" and reader.peek().lower() in (
        *("year", "month", "day", "hour", "minute", "second"),
    ):
        word += " " + reader.next().lower()
        if reader.accept("to"):
            word += " to " + reader.next().lower()
    if reader.accept("("):
        numbers = [reader.next()]
        while reader.accept(","):
            numbers.append(reader.next())
        reader.expect(")")
        word += "(" + ",".join(numbers) + ")"
        if word.startswith("decimal") and len(numbers) == 1:
            word = f"decimal({numbers[0]},0)"
    return parse_name(word)
