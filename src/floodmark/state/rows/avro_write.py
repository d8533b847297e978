"""Encodes Arrow rows in Avro, as `avro.py` reads them and Spark 4.0 and later write them."""

from __future__ import annotations

import struct
from typing import Any

from floodmark.errors import WrongUse
from floodmark.state.rows.avro import INTS, fixed_size
from floodmark.state.rows.types import Array, Atom, DataType, Decimal, Map, Struct, is_text, stored


def encode_avro(row: Any, schema: Struct) -> bytes:
    """Encode one row: an Arrow scalar of a struct with the schema's fields."""
    return b"".join(_optional(row[at], field.type) for at, field in enumerate(schema.fields))


def _number(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while True:
        low = zigzag & 0x7F
        zigzag >>= 7
        if not zigzag:
            out.append(low)
            return bytes(out)
        out.append(low | 0x80)


def _blob(data: bytes) -> bytes:
    return _number(len(data)) + data


def _optional(value: Any, kind: DataType) -> bytes:
    """Encode a union of null and the type: the branch, then the value."""
    if isinstance(kind, Atom) and kind.name == "void":
        return b""
    return _number(1) + _value(value, kind) if value.is_valid else _number(0)


def _nested(value: Any, kind: DataType) -> bytes:
    """Encode an element or a map's value: only structs, arrays and maps are unions there."""
    if isinstance(stored(kind), (Struct, Array, Map)):
        return _optional(value, kind)
    if not value.is_valid:
        raise WrongUse("Spark's Avro state has no place for a null inside an array or a map")
    return _value(value, kind)


def _value(value: Any, kind: DataType) -> bytes:
    kind = stored(kind)
    if isinstance(kind, Struct):
        return encode_avro(value, kind)
    if isinstance(kind, Array):
        return _block([_nested(item, kind.element) for item in value.values])
    if isinstance(kind, Map):
        return _block(
            [_blob(str(item[0]).encode()) + _nested(item[1], kind.value) for item in value.values]
        )
    if isinstance(kind, Decimal):
        sign, digits, exponent = value.as_py().as_tuple()
        unscaled = int("".join(map(str, digits))) * 10 ** (int(exponent) + kind.scale)
        signed: int = -unscaled if sign else unscaled
        return signed.to_bytes(fixed_size(kind.precision), "big", signed=True)
    assert isinstance(kind, Atom)
    return _atom(value, kind)


def _block(items: list[bytes]) -> bytes:
    return (_number(len(items)) + b"".join(items) if items else b"") + _number(0)


def _atom(value: Any, kind: Atom) -> bytes:
    if kind.name in INTS:
        return _number(value.as_py())
    if is_text(kind):
        return _blob(value.as_py().encode())
    if kind.name == "binary":
        return _blob(value.as_py())
    if kind.name == "boolean":
        return b"\x01" if value.as_py() else b"\x00"
    if kind.name == "float":
        return struct.pack("<f", value.as_py())
    if kind.name == "double":
        return struct.pack("<d", value.as_py())
    if kind.name in ("date", "timestamp", "timestamp_ntz"):
        return _number(value.value)
    raise WrongUse(f"Spark does not store {kind.ddl} in Avro")
