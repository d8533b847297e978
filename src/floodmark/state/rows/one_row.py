"""Converts one UnsafeRow in plain Python: a key to its bytes, a value's bytes to JSON data.

`unsaferow.py` and `unsaferow_write.py` do this for whole columns and every type. Whoever asks
for one key should not wait for Arrow to be loaded, so here are the types that keys and
values mostly have. Whatever is not simple or not sound is None: the caller then goes the
other way, which knows all types and names what is wrong.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import struct
from collections.abc import Mapping
from typing import Any

from floodmark.state.keys.partitioning import SEED, hash_bytes, hash_int, hash_long, modulo
from floodmark.state.rows.types import Atom, DataType, Decimal, Struct, is_text

_NUMBERS = {
    "boolean": "<?",
    "byte": "<b",
    "short": "<h",
    "integer": "<i",
    "long": "<q",
    "float": "<f",
    "double": "<d",
    "date": "<i",
    "timestamp": "<q",
    "timestamp_ntz": "<q",
}
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY_ZERO = datetime.date(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_UTC = datetime.timezone.utc


class _NotSimple(Exception):
    """Raised if the row must be converted in the other way."""


def encode_row(values: Mapping[str, Any], schema: Struct) -> bytes | None:
    try:
        return _encoded(values, schema)
    except (_NotSimple, struct.error, OverflowError):
        return None


def decode_row(row: bytes, schema: Struct) -> dict[str, Any] | None:
    """Return the fields as JSON data, in the form of `values.plain`."""
    try:
        return {
            field.name: None if raw is None else _plain(raw, field.type)
            for field, raw in zip(schema.fields, _raw(row, schema), strict=True)
        }
    except (_NotSimple, struct.error):
        return None


def partition_of_row(row: bytes, schema: Struct, partitions: int) -> int:
    """Return the partition of a key that `encode_row` made."""
    seed = SEED
    for field, raw in zip(schema.fields, _raw(row, schema), strict=True):
        if raw is not None:
            seed = _hash(raw, field.type, seed)
    return modulo(seed, partitions)


def _layout(kind: DataType) -> str | None:
    """Return how a slot holds a number; None if it points into the variable part."""
    if isinstance(kind, Decimal):
        return "<q" if kind.width is not None else None
    if isinstance(kind, Atom) and (kind.name == "binary" or is_text(kind)):
        return None
    layout = _NUMBERS.get(kind.name) if isinstance(kind, Atom) else None
    if layout is None:
        raise _NotSimple
    return layout


def _fixed(schema: Struct) -> int:
    return (len(schema.fields) + 63) // 64 * 8


def _encoded(values: Mapping[str, Any], schema: Struct) -> bytes:
    bits = _fixed(schema)
    row = bytearray(bits + 8 * len(schema.fields))
    for at, field in enumerate(schema.fields):
        layout, value = _layout(field.type), values[field.name]
        slot = bits + 8 * at
        if value is None:
            row[at // 8] |= 1 << at % 8
            if isinstance(field.type, Decimal) and layout is None:
                raise _NotSimple  # Spark reserves room for it
        elif layout is not None:
            struct.pack_into(layout, row, slot, _number(value, field.type))
        else:
            data = _octets(value, field.type)
            struct.pack_into("<II", row, slot, len(data), len(row))
            row += data + bytes(-len(data) % 8)
    return bytes(row)


def _number(value: Any, kind: DataType) -> Any:
    if isinstance(kind, Decimal):
        return _unscaled(value, kind)
    assert isinstance(kind, Atom)
    if kind.name == "boolean":
        return _only(value, bool)
    if kind.name in ("float", "double"):
        if value != value:
            raise _NotSimple  # NaN has many forms
        return _only(value, float)
    if kind.name == "date":
        return (_only(value, datetime.date) - _DAY_ZERO).days
    if kind.name in ("timestamp", "timestamp_ntz"):
        moment = _only(value, datetime.datetime)
        if (moment.tzinfo is None) != (kind.name == "timestamp_ntz"):
            raise _NotSimple
        zero = _EPOCH if moment.tzinfo is None else _EPOCH.replace(tzinfo=_UTC)
        return (moment - zero) // _MICROSECOND
    return _only(value, int)


def _only(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _NotSimple
    return value


def _octets(value: Any, kind: DataType) -> bytes:
    if not isinstance(kind, Atom):
        raise _NotSimple  # a large decimal has 16 bytes, but may use fewer
    if is_text(kind):
        return bytes(_only(value, str).encode("utf-8", "strict"))
    return bytes(_only(value, bytes))


def _unscaled(value: Any, kind: Decimal) -> int:
    sign, digits, exponent = _only(value, decimal.Decimal).as_tuple()
    if not isinstance(exponent, int) or exponent < -kind.scale:
        raise _NotSimple
    found = int("".join(map(str, digits))) * int(10 ** (exponent + kind.scale))
    if found >= 10**kind.precision:
        raise _NotSimple
    return -found if sign else found


def _raw(row: bytes, schema: Struct) -> list[Any]:
    """Return every field's number or bytes; None for null."""
    bits = _fixed(schema)
    if len(row) % 8 or len(row) < bits + 8 * len(schema.fields):
        raise _NotSimple
    found: list[Any] = []
    for at, field in enumerate(schema.fields):
        layout = _layout(field.type)
        if row[at // 8] >> at % 8 & 1:
            found.append(None)
        elif layout is not None:
            found.append(struct.unpack_from(layout, row, bits + 8 * at)[0])
        else:
            size, start = struct.unpack_from("<II", row, bits + 8 * at)
            if start + size > len(row):
                raise _NotSimple
            found.append(row[start : start + size])
    return found


def _hash(raw: Any, kind: DataType, seed: int) -> int:
    if isinstance(raw, bytes):
        return hash_bytes(raw, seed)
    if isinstance(raw, float):
        narrow = isinstance(kind, Atom) and kind.name == "float"
        # -0.0 is 0.0
        packed = struct.pack("<f" if narrow else "<d", raw or 0.0)
        raw = int.from_bytes(packed, "little", signed=True)
    wide = isinstance(kind, Decimal) or (isinstance(kind, Atom) and kind.width == 8)
    return hash_long(int(raw), seed) if wide else hash_int(int(raw), seed)


def _plain(raw: Any, kind: DataType) -> Any:
    if isinstance(kind, Decimal):
        return _decimal_text(raw, kind)
    assert isinstance(kind, Atom)
    if is_text(kind):
        return raw.decode("utf-8", "replace")
    if kind.name == "binary":
        return base64.b64encode(raw).decode()
    if isinstance(raw, float):
        return raw if raw - raw == 0 else str(raw)
    try:
        if kind.name == "date":
            return (_DAY_ZERO + datetime.timedelta(days=raw)).isoformat()
        if kind.name in ("timestamp", "timestamp_ntz"):
            moment = _EPOCH + raw * _MICROSECOND
            return (moment.replace(tzinfo=_UTC) if kind.name == "timestamp" else moment).isoformat()
    except OverflowError:
        return raw  # Spark's times reach beyond Python's year 9999
    return raw


def _decimal_text(raw: Any, kind: Decimal) -> str:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
    if abs(unscaled) >= 10**kind.precision:
        raise _NotSimple
    digits = tuple(map(int, str(abs(unscaled))))
    return format(decimal.Decimal((int(unscaled < 0), digits, -kind.scale)), "f")
