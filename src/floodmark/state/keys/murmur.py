"""Computes Spark's Murmur3 hash over whole columns: the partition of every key at once.

`partitioning.py` hashes one key at a time, of every type. Here a million keys cost a few array
operations. Arrays and maps, which are rare in keys, use the slow way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from floodmark.state.keys.partitioning import SEED, hash_value
from floodmark.state.rows.rowbytes import RowBytes, from_binary, gather
from floodmark.state.rows.types import Atom, DataType, Decimal, Struct, is_text, stored

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Words = NDArray[np.uint32]
    Mask = NDArray[np.bool_]


def hashes_of(columns: list[pa.Array], types: list[DataType]) -> Words:
    import numpy as np

    assert columns
    seeds = np.full(len(columns[0]), SEED, np.uint32)
    for column, kind in zip(columns, types, strict=True):
        seeds = _hashed(column, stored(kind), seeds)
    return seeds


def _hashed(column: pa.Array, kind: DataType, seeds: Words) -> Words:
    """Hash a column; a null leaves the hash unchanged."""
    import numpy as np

    if isinstance(kind, Struct):
        found = seeds
        for part, field in zip(column.flatten(), kind.fields, strict=True):
            found = _hashed(part, stored(field.type), found)
        return found
    quick = _quick(column, kind, seeds)
    if quick is None:
        hashes = (
            hash_value(value, kind, seed)
            for value, seed in zip(column, seeds.tolist(), strict=True)
        )
        return np.fromiter(hashes, np.uint32, len(column))
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return quick if null is None else np.where(null, seeds, quick)


def _quick(column: pa.Array, kind: DataType, seeds: Words) -> Words | None:
    import numpy as np
    import pyarrow as pa

    if not isinstance(kind, Atom):
        return _small_decimal(column, kind, seeds) if isinstance(kind, Decimal) else None
    if kind.name == "void":
        return seeds
    if is_text(kind) or kind.name == "binary":
        filled = column.fill_null("" if is_text(kind) else b"") if column.null_count else column
        return _of_bytes(from_binary(filled.cast(pa.binary())), seeds)
    if kind.name == "boolean":
        return _of_ints(_numbers(column.cast(pa.int8())), seeds)
    if kind.name in ("float", "double"):
        width = "4" if kind.name == "float" else "8"
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        values = np.where(values == 0, values.dtype.type(0), values)  # -0.0 is 0.0
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
        bits = values.view(f"i{width}")
        return _of_ints(bits, seeds) if width == "4" else _of_longs(bits, seeds)
    if kind.width is None:
        return None
    wide = pa.int64() if kind.width == 8 else pa.int32()
    numbers = _numbers(column.cast(wide) if _is_integer(column) else column.view(wide))
    return _of_longs(numbers, seeds) if kind.width == 8 else _of_ints(numbers, seeds)


def _is_integer(column: pa.Array) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(column.type))


def _numbers(column: pa.Array) -> Any:
    return (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)


def _small_decimal(column: pa.Array, kind: Decimal, seeds: Words) -> Words | None:
    import numpy as np

    if kind.width is None:
        return None
    words = np.frombuffer(column.buffers()[1] or b"", "<i8").reshape(-1, 2)
    return _of_longs(words[column.offset : column.offset + len(column), 0], seeds)


def _rotated(values: Words, by: int) -> Words:
    import numpy as np

    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))


def _mixed(seeds: Words, words: Words) -> Words:
    import numpy as np

    words = _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(seeds ^ words, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(seeds: Words, lengths: Any) -> Words:
    import numpy as np

    seeds = seeds ^ lengths
    seeds = (seeds ^ (seeds >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    seeds = (seeds ^ (seeds >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return seeds ^ (seeds >> np.uint32(16))


def _of_ints(values: Any, seeds: Words) -> Words:
    import numpy as np

    return _finished(_mixed(seeds, values.astype("i4").view(np.uint32)), np.uint32(4))


def _of_longs(values: Any, seeds: Words) -> Words:
    import numpy as np

    halves = np.ascontiguousarray(values.astype("<i8")).view(np.uint32).reshape(-1, 2)
    return _finished(_mixed(_mixed(seeds, halves[:, 0]), halves[:, 1]), np.uint32(8))


def _of_bytes(rows: RowBytes, seeds: Words) -> Words:
    import numpy as np

    found = seeds.copy()
    whole = rows.lengths // 4
    for step in range(int(whole.max()) if len(rows) else 0):
        live = np.nonzero(whole > step)[0]
        words = gather(rows.data, rows.starts[live] + 4 * step, "<u4")
        found[live] = _mixed(found[live], words)
    for step in range(3):
        # Spark mixes each of the last bytes separately, as a signed number.
        live = np.nonzero(rows.lengths - 4 * whole > step)[0]
        octets = gather(rows.data, rows.starts[live] + 4 * whole[live] + step, "i1")
        found[live] = _mixed(found[live], octets.astype("i4").view(np.uint32))
    return _finished(found, rows.lengths.astype(np.uint32))
