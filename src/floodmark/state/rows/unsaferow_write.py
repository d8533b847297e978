"""Encodes Arrow rows as UnsafeRow, byte for byte as Spark writes it.

Spark compares keys by their bytes, so the order of the variable part, its padding and the bytes of
a null all matter. Everything is made in whole 8-byte words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.errors import WrongUse
from floodmark.state.rows import types
from floodmark.state.rows.rowbytes import RowBytes, starts_of
from floodmark.state.rows.types import arrow_type, ddl, is_text, stored, width_of
from floodmark.state.rows.unsaferow import WORD, bitset_width

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from floodmark.state.rows.rowbytes import Ints

    Words = NDArray[np.uint64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Blobs:
    """Variable parts: each is a run of words in `data`, of which `sizes` bytes count."""

    data: Words
    starts: Ints
    counts: Ints
    sizes: Ints


@dataclass(frozen=True)
class _Column:
    """A column ready for the layout: a fixed value for each row, or a blob."""

    null: Mask
    fixed: Any = None
    blobs: _Blobs | None = None
    keeps_place: bool = False
    """Whether Spark reserves room for a null (large decimals, intervals), to update it in place."""


def encode_rows(array: pa.Array, schema: types.Struct) -> RowBytes:
    """Return rows of a struct column, after a cast to the schema's types."""
    import numpy as np

    blobs = _rows(_conform(array, schema), schema)
    return RowBytes(
        np.ascontiguousarray(blobs.data).view(np.uint8), blobs.starts * WORD, blobs.sizes
    )


def _conform(array: pa.Array, schema: types.Struct) -> pa.StructArray:
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    try:
        return array if array.type == arrow_type(schema) else array.cast(arrow_type(schema))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise WrongUse(f"the rows do not fit the schema {ddl(schema)}: {error}") from None


def _null_mask(array: pa.Array) -> Mask:
    import numpy as np

    if not array.null_count:
        return np.zeros(len(array), bool)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool)


def _rows(array: pa.StructArray, schema: types.Struct) -> _Blobs:
    import numpy as np

    # flatten() folds the struct's own nulls into the fields, and heeds its offset.
    parts = array.flatten() if schema.fields else []
    columns = [
        _column(part, field.type, in_array=False)
        for part, field in zip(parts, schema.fields, strict=True)
    ]
    bits = bitset_width(len(columns)) // WORD
    fixed = np.full(len(array), bits + len(columns), np.int64)
    counts = fixed.copy()
    for column in columns:
        if column.blobs is not None:
            counts += column.blobs.counts
    starts = starts_of(counts)
    out = np.zeros(int(counts.sum()), np.uint64)
    cursor = fixed
    for at, column in enumerate(columns):
        out[starts + at // 64] |= column.null.astype(np.uint64) << np.uint64(at % 64)
        slot, cursor = _place(column, out, starts, cursor)
        out[starts + bits + at] = slot
    return _Blobs(out, starts, counts, counts * WORD)


def _place(column: _Column, out: Words, starts: Ints, cursor: Ints) -> tuple[Any, Ints]:
    """Copy a column's blobs to the cursors; return its slots and the new cursors."""
    import numpy as np

    blobs = column.blobs
    if blobs is None:
        return np.where(column.null, np.uint64(0), column.fixed), cursor
    _scatter(blobs, out, starts + cursor)
    slot = (cursor.astype(np.uint64) * np.uint64(WORD)) << np.uint64(32)
    slot |= blobs.sizes.astype(np.uint64)
    if not column.keeps_place:
        slot = np.where(column.null, np.uint64(0), slot)
    return slot, cursor + blobs.counts


def _scatter(blobs: _Blobs, out: Words, places: Ints) -> None:
    import numpy as np

    total = int(blobs.counts.sum())
    if not total:
        return
    steps = np.arange(total, dtype=np.int64) - np.repeat(starts_of(blobs.counts), blobs.counts)
    out[np.repeat(places, blobs.counts) + steps] = blobs.data[
        np.repeat(blobs.starts, blobs.counts) + steps
    ]


def _column(array: pa.Array, kind: types.DataType, in_array: bool) -> _Column:
    import numpy as np

    kind = stored(kind)
    null = _null_mask(array)
    if isinstance(kind, (types.Struct, types.Array, types.Map)):
        return _Column(null, blobs=_nested(array, null, kind))
    if isinstance(kind, types.Decimal):
        if kind.width is None:
            return _Column(
                null, blobs=_large_decimals(array, null, in_array), keeps_place=not in_array
            )
        return _Column(null, _decimal_words(array)[:, 0].astype("<i8").view(np.uint64))
    assert isinstance(kind, types.Atom)
    if kind.name == "void":
        return _Column(np.ones(len(array), bool), np.zeros(len(array), np.uint64))
    if kind.name == "interval":
        return _Column(null, blobs=_intervals(array, null, in_array), keeps_place=not in_array)
    if kind.name == "variant":
        return _Column(null, blobs=_variants(array))
    if kind.width is None:
        return _Column(null, blobs=_strings(array, is_text(kind)))
    return _Column(null, _fixed(array, kind))


def _fixed(array: pa.Array, kind: types.Atom) -> Words:
    """Return the value in the low bytes of a word, with zeros in the others."""
    import numpy as np
    import pyarrow as pa

    if kind.name == "boolean":
        return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.uint64)
    width = kind.width or WORD
    values = np.frombuffer(array.buffers()[1] or b"", f"<u{width}")[
        array.offset : array.offset + len(array)
    ]
    assert not pa.types.is_boolean(array.type)
    return values.astype(np.uint64)


def _nested(array: pa.Array, null: Mask, kind: types.Struct | types.Array | types.Map) -> _Blobs:
    import numpy as np
    import pyarrow as pa

    if null.any():
        array = array.filter(pa.array(~null))
    if isinstance(kind, types.Struct):
        blobs = _rows(array, kind)
    elif isinstance(kind, types.Array):
        lengths = _list_lengths(array)
        blobs = _arrays(array.flatten(), lengths, kind.element)
    else:
        blobs = _maps(array, kind)
    if not null.any():
        return blobs
    places = np.cumsum(~null) - 1
    return _Blobs(
        blobs.data,
        _spread(blobs.starts, places, null),
        _spread(blobs.counts, places, null),
        _spread(blobs.sizes, places, null),
    )


def _spread(values: Ints, places: Ints, null: Mask) -> Ints:
    import numpy as np

    if not len(values):
        return np.zeros(len(null), np.int64)
    return np.where(null, 0, values[np.maximum(places, 0)])


def _list_lengths(array: pa.Array) -> Ints:
    import numpy as np

    offsets = np.frombuffer(array.buffers()[1] or b"\0\0\0\0", np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return np.asarray(offsets[1:] - offsets[:-1])


def _arrays(elements: pa.Array, lengths: Ints, kind: types.DataType) -> _Blobs:
    """Encode arrays of one element type: a count, null bits, the elements, their variable parts."""
    import numpy as np

    column = _column(elements, kind, in_array=True)
    width = width_of(kind) or WORD
    owner = np.repeat(np.arange(len(lengths)), lengths)
    index = np.arange(len(elements), dtype=np.int64) - np.repeat(starts_of(lengths), lengths)
    header = 1 + (lengths + 63) // 64
    fixed = header + (lengths * width + WORD - 1) // WORD
    counts = fixed.copy()
    if column.blobs is not None:
        counts += np.bincount(owner, column.blobs.counts, len(lengths)).astype(np.int64)
    starts = starts_of(counts)
    out = np.zeros(int(counts.sum()), np.uint64)
    out[starts] = lengths.astype(np.uint64)
    base = starts[owner]
    marks = column.null.astype(np.uint64) << (index % 64).astype(np.uint64)
    np.bitwise_or.at(out, base + 1 + index // 64, marks)
    values = column.fixed
    if column.blobs is not None:
        before = starts_of(column.blobs.counts)
        # The blobs of one array follow each other, in the order of its elements.
        first = np.zeros(len(lengths), np.int64)
        filled = lengths > 0
        first[filled] = before[starts_of(lengths)[filled]]
        cursor = fixed[owner] + before - first[owner]
        values, _ = _place(column, out, base, cursor)
    else:
        values = np.where(column.null, np.uint64(0), values)
    octets = out.view(np.uint8)
    at = (base + header[owner]) * WORD + index * width
    raw = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, WORD)
    for byte in range(width):
        octets[at + byte] = raw[:, byte]
    return _Blobs(out, starts, counts, counts * WORD)


def _maps(array: pa.Array, kind: types.Map) -> _Blobs:
    import numpy as np

    lengths = _list_lengths(array)
    first = int(np.frombuffer(array.buffers()[1] or b"\0\0\0\0", np.int32)[array.offset])
    total = int(lengths.sum())
    keys = _arrays(array.keys.slice(first, total), lengths, kind.key)
    values = _arrays(array.items.slice(first, total), lengths, kind.value)
    counts = 1 + keys.counts + values.counts
    starts = starts_of(counts)
    out = np.zeros(int(counts.sum()), np.uint64)
    out[starts] = keys.sizes.astype(np.uint64)
    _scatter(keys, out, starts + 1)
    _scatter(values, out, starts + 1 + keys.counts)
    return _Blobs(out, starts, counts, counts * WORD)


def _padded(data: Any, offsets: Ints) -> _Blobs:
    """Return byte strings with each moved to a word boundary and padded with zeros."""
    import numpy as np

    sizes = offsets[1:] - offsets[:-1]
    counts = (sizes + WORD - 1) // WORD
    starts = starts_of(counts)
    out = np.zeros(int(counts.sum()), np.uint64)
    total = int(sizes.sum())
    if total:
        steps = np.arange(total, dtype=np.int64) - np.repeat(starts_of(sizes), sizes)
        out.view(np.uint8)[np.repeat(starts * WORD, sizes) + steps] = data[
            np.repeat(offsets[:-1], sizes) + steps
        ]
    return _Blobs(out, starts, counts, sizes)


def _strings(array: pa.Array, text: bool) -> _Blobs:
    import numpy as np

    _, offsets, data = array.fill_null("" if text else b"").buffers()
    offset = 0 if array.null_count else array.offset
    bounds = np.frombuffer(offsets or b"\0\0\0\0", np.int32)[offset : offset + len(array) + 1]
    return _padded(np.frombuffer(data or b"", np.uint8), bounds.astype(np.int64))


def _decimal_words(array: pa.Array) -> Any:
    import numpy as np

    words = np.frombuffer(array.buffers()[1] or b"", "<u8").reshape(-1, 2)
    return words[array.offset : array.offset + len(array)]


def _large_decimals(array: pa.Array, null: Mask, in_array: bool) -> _Blobs:
    import numpy as np

    octets = np.ascontiguousarray(_decimal_words(array)).view(np.uint8).reshape(-1, 16)
    big = octets[:, ::-1].copy()
    big[null] = 0
    # Like BigInteger.toByteArray, leave out leading bytes that only repeat the sign.
    sign = np.where(big[:, 0] >= 128, 255, 0).astype(np.uint8)
    sizes = np.full(len(big), 16, np.int64)
    leading = np.ones(len(big), bool)
    for at in range(15):
        top = np.where(big[:, at + 1] >= 128, 255, 0)
        leading &= (big[:, at] == sign) & (top == sign)
        sizes -= leading
    out = np.zeros((len(big), 16), np.uint8)
    for at in range(16):
        inside = at < sizes
        source = np.where(inside, 16 - sizes + at, 0)
        out[:, at] = np.where(inside, big[np.arange(len(big)), source], 0)
    sizes = np.where(null, 0, sizes)
    counts = (sizes + WORD - 1) // WORD if in_array else np.full(len(big), 2, np.int64)
    return _Blobs(out.view(np.uint64).ravel(), np.arange(len(big)) * 2, counts, sizes)


def _intervals(array: pa.Array, null: Mask, in_array: bool) -> _Blobs:
    import numpy as np

    months, days, micros = (part.fill_null(0).to_numpy() for part in array.flatten())
    words = np.zeros((len(array), 2), np.uint64)
    words.view("<i4").reshape(-1, 4)[:, 0] = months
    words.view("<i4").reshape(-1, 4)[:, 1] = days
    words.view("<i8").reshape(-1, 2)[:, 1] = micros
    present = np.where(null, 0, 1) if in_array else np.ones(len(array), np.int64)
    return _Blobs(words.ravel(), np.arange(len(array)) * 2, present * 2, present * 16)


def _variants(array: pa.Array) -> _Blobs:
    import numpy as np

    values, metadata = (part.fill_null(b"").to_pylist() for part in array.flatten())
    blobs = [
        len(value).to_bytes(4, "little") + value + extra if valid else b""
        for value, extra, valid in zip(values, metadata, array.is_valid().to_pylist(), strict=True)
    ]
    offsets = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum([len(blob) for blob in blobs], out=offsets[1:])
    return _padded(np.frombuffer(b"".join(blobs), np.uint8), offsets)
