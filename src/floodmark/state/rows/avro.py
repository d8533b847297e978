"""Decodes Avro-encoded state rows (Spark 4.0's `encodingFormat=avro`).

Spark makes every field of a record a union with null, null first. The bytes carry no schema, so the
Spark schema that wrote them is needed to read them.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from typing import Any

from floodmark.errors import MalformedFile
from floodmark.state.rows.types import Array, Atom, DataType, Decimal, Map, Struct, is_text, stored

INTS = ("byte", "short", "integer", "long")


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise MalformedFile("an Avro row of the state ends too early")
        piece = self.data[self.at : self.at + size]
        self.at += size
        return piece

    def number(self) -> int:
        value = shift = 0
        while True:
            octet = self.take(1)[0]
            value |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                break
            if shift > 63:
                raise MalformedFile("an Avro number of the state is too long")
        return (value >> 1) ^ -(value & 1)


def decode_avro(data: bytes, schema: Struct) -> dict[str, Any]:
    """Return one row as plain Python values that Arrow accepts."""
    cursor = _Cursor(data)
    row = _record(cursor, schema)
    if cursor.at != len(data):
        raise MalformedFile("an Avro row of the state has bytes after its end")
    return row


def _record(cursor: _Cursor, schema: Struct) -> dict[str, Any]:
    return {field.name: _optional(cursor, field.type) for field in schema.fields}


def _optional(cursor: _Cursor, kind: DataType) -> Any:
    if isinstance(kind, Atom) and kind.name == "void":
        return None
    branch = cursor.number()
    if branch == 0:
        return None
    if branch != 1:
        raise MalformedFile(f"an Avro row of the state has branch {branch} of two")
    return _value(cursor, kind)


def _nested(cursor: _Cursor, kind: DataType) -> Any:
    """Decode an element or a map's value: only structs, arrays and maps are unions there."""
    if isinstance(stored(kind), (Struct, Array, Map)):
        return _optional(cursor, kind)
    return _value(cursor, kind)


def _value(cursor: _Cursor, kind: DataType) -> Any:
    kind = stored(kind)
    if isinstance(kind, Struct):
        return _record(cursor, kind)
    if isinstance(kind, Array):
        return [_nested(cursor, kind.element) for _ in _blocks(cursor)]
    if isinstance(kind, Map):
        return [(_text(cursor), _nested(cursor, kind.value)) for _ in _blocks(cursor)]
    if isinstance(kind, Decimal):
        unscaled = int.from_bytes(cursor.take(fixed_size(kind.precision)), "big", signed=True)
        return decimal.Decimal(unscaled).scaleb(-kind.scale, decimal.Context(prec=60))
    assert isinstance(kind, Atom)
    return _atom(cursor, kind)


def _atom(cursor: _Cursor, kind: Atom) -> Any:
    if kind.name in INTS:
        return cursor.number()
    if is_text(kind):
        return _text(cursor)
    if kind.name == "boolean":
        return cursor.take(1) != b"\x00"
    if kind.name == "float":
        return struct.unpack("<f", cursor.take(4))[0]
    if kind.name == "double":
        return struct.unpack("<d", cursor.take(8))[0]
    if kind.name == "binary":
        return cursor.take(cursor.number())
    if kind.name == "date":
        return _day(cursor.number())
    if kind.name in ("timestamp", "timestamp_ntz"):
        # These are microseconds since the epoch, as Arrow expects them.
        return cursor.number()
    if kind.name == "void":
        return None
    raise MalformedFile(f"Spark does not store {kind.ddl} in Avro")


def _day(number: int) -> Any:
    try:
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=number)
    except OverflowError:
        raise MalformedFile(f"no date is {number} days from 1970") from None


def _text(cursor: _Cursor) -> str:
    return cursor.take(cursor.number()).decode("utf-8", "replace")


def _blocks(cursor: _Cursor) -> Any:
    while count := cursor.number():
        if count < 0:
            cursor.number()
            count = -count
        if count > len(cursor.data):
            raise MalformedFile("an Avro row of the state claims too many elements")
        yield from range(count)


def fixed_size(precision: int) -> int:
    """Return how many bytes a decimal of a precision needs."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size


def project(row: dict[str, Any], schema: Struct) -> dict[str, Any]:
    """Return a row of an older schema in the newest schema: missing fields are null."""
    return {field.name: _reshaped(row.get(field.name), field.type) for field in schema.fields}


def _reshaped(value: Any, kind: DataType) -> Any:
    kind = stored(kind)
    if isinstance(kind, Struct) and isinstance(value, dict):
        return project(value, kind)
    if isinstance(kind, Array) and isinstance(value, list):
        return [_reshaped(item, kind.element) for item in value]
    return value
