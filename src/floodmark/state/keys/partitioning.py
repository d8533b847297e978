"""Computes the partition of a key: Spark's Murmur3 hash of its columns, modulo the count."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from floodmark.state.rows import types
from floodmark.state.rows.types import is_text, is_year_month, stored

if TYPE_CHECKING:
    import pyarrow as pa

SEED = 42
_MASK = 0xFFFFFFFF


def partition_of(key: pa.StructScalar, schema: types.Struct, partitions: int) -> int:
    """Return the partition that Spark's hash partitioning gives a key."""
    seed = SEED
    for at, field in enumerate(schema.fields):
        seed = hash_value(key[at], field.type, seed)
    return modulo(seed, partitions)


def modulo(hashed: int, partitions: int) -> int:
    """Return the partition; Spark treats the hash as a signed number."""
    return (hashed - (1 << 32) if hashed >= 1 << 31 else hashed) % partitions


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def _mix_key(value: int) -> int:
    return _rotate((value * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK


def _mix_hash(seed: int, key: int) -> int:
    return (_rotate(seed ^ key, 13) * 5 + 0xE6546B64) & _MASK


def _finish(seed: int, length: int) -> int:
    seed ^= length
    seed = ((seed ^ (seed >> 16)) * 0x85EBCA6B) & _MASK
    seed = ((seed ^ (seed >> 13)) * 0xC2B2AE35) & _MASK
    return seed ^ (seed >> 16)


def hash_int(value: int, seed: int) -> int:
    return _finish(_mix_hash(seed, _mix_key(value & _MASK)), 4)


def hash_long(value: int, seed: int) -> int:
    seed = _mix_hash(seed, _mix_key(value & _MASK))
    return _finish(_mix_hash(seed, _mix_key((value >> 32) & _MASK)), 8)


def hash_bytes(data: bytes, seed: int) -> int:
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _mix_hash(seed, _mix_key(word))
    for octet in data[whole:]:
        # Spark mixes each of the last bytes separately, as a signed number.
        seed = _mix_hash(seed, _mix_key((octet - 256 if octet > 127 else octet) & _MASK))
    return _finish(seed, len(data))


def hash_value(value: Any, kind: types.DataType, seed: int) -> int:
    """Hash a value; a null leaves the hash unchanged."""
    kind = stored(kind)
    if not value.is_valid:
        return seed
    if isinstance(kind, types.Struct):
        for at, field in enumerate(kind.fields):
            seed = hash_value(value[at], field.type, seed)
        return seed
    if isinstance(kind, types.Array):
        for element in value.values:
            seed = hash_value(element, kind.element, seed)
        return seed
    if isinstance(kind, types.Map):
        for entry in value.values:
            seed = hash_value(entry[0], kind.key, seed)
            seed = hash_value(entry[1], kind.value, seed)
        return seed
    if isinstance(kind, types.Decimal):
        return _hash_decimal(value, kind, seed)
    assert isinstance(kind, types.Atom)
    return _hash_atom(value, kind, seed)


def _hash_decimal(value: Any, kind: types.Decimal, seed: int) -> int:
    sign, digits, exponent = value.as_py().as_tuple()
    unscaled = int("".join(map(str, digits))) * 10 ** (int(exponent) + kind.scale)
    unscaled = -unscaled if sign else unscaled
    if kind.width is not None:
        return hash_long(unscaled, seed)
    size = (unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()) // 8 + 1
    return hash_bytes(unscaled.to_bytes(size, "big", signed=True), seed)


def _hash_atom(value: Any, kind: types.Atom, seed: int) -> int:
    if is_text(kind):
        return hash_bytes(value.as_py().encode(), seed)
    if kind.name == "binary":
        return hash_bytes(value.as_py(), seed)
    if kind.name == "boolean":
        return hash_int(int(value.as_py()), seed)
    if kind.name == "float":
        number = 0.0 if value.as_py() == 0 else value.as_py()
        return hash_int(struct.unpack("<i", struct.pack("<f", number))[0], seed)
    if kind.name == "double":
        number = 0.0 if value.as_py() == 0 else value.as_py()
        return hash_long(struct.unpack("<q", struct.pack("<d", number))[0], seed)
    if kind.name == "interval":
        parts = value.as_py()
        return hash_int(
            parts["months"], hash_int(parts["days"], hash_long(parts["microseconds"], seed))
        )
    is_number = kind.name in _PLAIN or is_year_month(kind)
    number = value.as_py() if is_number else value.value
    return (
        hash_int(number, seed)
        if kind.width is not None and kind.width < 8
        else hash_long(number, seed)
    )


_PLAIN: Mapping[str, None] = dict.fromkeys(("byte", "short", "integer", "long"))
