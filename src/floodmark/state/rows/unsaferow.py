"""Decodes UnsafeRow to Arrow: Spark's own row layout, read one column at a time.

A row is 8-byte words: null bits, then a slot for each field, then the variable part. Slots of
strings, structs and arrays point into it (offset from the row's start in the high half, size in the
low half). Arrays and maps nest in the same way, so one function reads a column wherever it is:
`_column` takes the address of every slot and the bounds of its container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.errors import MalformedFile
from floodmark.state.rows.rowbytes import RowBytes, binary_array, gather
from floodmark.state.rows.types import (
    Array,
    Atom,
    DataType,
    Decimal,
    Map,
    Struct,
    arrow_type,
    is_text,
    stored,
    width_of,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from floodmark.state.rows.rowbytes import Bytes, Ints

    Mask = NDArray[np.bool_]

WORD = 8
_MOST_ELEMENTS = 2**31 - 16


@dataclass(frozen=True)
class _Slots:
    """The positions of one column's values: slots, containers, and which are null."""

    data: Bytes
    at: Ints
    base: Ints
    end: Ints
    null: Mask

    def __len__(self) -> int:
        return len(self.at)

    def only(self, rows: Mask) -> _Slots:
        return _Slots(self.data, self.at[rows], self.base[rows], self.end[rows], self.null[rows])


def bitset_width(fields: int) -> int:
    return (fields + 63) // 64 * WORD


def decode_rows(rows: RowBytes, schema: Struct) -> pa.StructArray:
    """Return rows of one schema as a struct column; a row itself is never null."""
    import pyarrow as pa

    columns = [_column(slots, field.type) for slots, field in _fields(rows, schema)]
    if not schema.fields:
        return pa.array([{}] * len(rows), pa.struct([]))
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type(schema)))


def check_rows(rows: RowBytes, schema: Struct) -> None:
    """Check a row as Spark does before it trusts one."""
    if not len(rows):
        return
    fixed = bitset_width(len(schema.fields)) + WORD * len(schema.fields)
    shortest = int(rows.lengths.min())
    if shortest < fixed:
        raise MalformedFile(
            f"a row of the state has {shortest} bytes; its schema needs at least {fixed}",
            "The state was written with another schema.",
        )
    if int((rows.lengths & 7).max()):
        raise MalformedFile("a row of the state is not a whole number of 8-byte words")
    if int(rows.starts.min()) < 0 or int((rows.starts + rows.lengths).max()) > len(rows.data):
        raise MalformedFile("a row of the state points outside its file")


def _fields(rows: RowBytes, schema: Struct) -> Any:
    check_rows(rows, schema)
    for at, field in enumerate(schema.fields):
        yield _slots(rows, schema, at, checked=True), field


def _slots(rows: RowBytes, schema: Struct, at: int, checked: bool = False) -> _Slots:
    if not checked:
        check_rows(rows, schema)
    bits = gather(rows.data, rows.starts + at // 8, "u1")
    null = (bits & (1 << (at % 8))) != 0
    slot = rows.starts + bitset_width(len(schema.fields)) + WORD * at
    return _Slots(rows.data, slot, rows.starts, rows.starts + rows.lengths, null)


def _column(slots: _Slots, kind: DataType) -> pa.Array:
    kind = stored(kind)
    if isinstance(kind, Struct):
        return _expanded(slots, lambda inner: decode_rows(_pointed(inner), kind), kind)
    if isinstance(kind, Array):
        return _expanded(slots, lambda inner: _lists(_pointed(inner), kind), kind)
    if isinstance(kind, Map):
        return _expanded(slots, lambda inner: _maps(_pointed(inner), kind), kind)
    if isinstance(kind, Decimal):
        if kind.width is None:
            return _large_decimals(slots, kind)
        return _decimals(gather(slots.data, slots.at, "<i8"), slots.null, kind)
    assert isinstance(kind, Atom)
    return _atoms(slots, kind)


def _atoms(slots: _Slots, kind: Atom) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    wanted = arrow_type(kind)
    if kind.name == "void":
        return pa.nulls(len(slots))
    if kind.name == "interval":
        return _expanded(slots, _intervals, kind)
    if kind.name == "variant":
        return _expanded(slots, _variants, kind)
    if kind.width is None:
        return _strings(slots, is_text(kind))
    if kind.name == "boolean":
        values = gather(slots.data, slots.at, "u1") != 0
        return pa.array(values, wanted, mask=slots.null if slots.null.any() else None)
    floating = kind.name in ("float", "double")
    values = gather(slots.data, slots.at, f"<{'f' if floating else 'i'}{kind.width}")
    return pa.Array.from_buffers(
        wanted,
        len(slots),
        [_validity(slots.null), pa.py_buffer(np.ascontiguousarray(values))],
        int(slots.null.sum()),
    )


def _validity(null: Mask) -> Any:
    import numpy as np
    import pyarrow as pa

    if not null.any():
        return None
    return pa.py_buffer(np.packbits(~null, bitorder="little"))


def _pointed(slots: _Slots) -> RowBytes:
    """Return the bytes that the slots point at, within the row or array of each slot."""
    import numpy as np

    words = gather(slots.data, slots.at, "<u8")
    offsets = (words >> np.uint64(32)).astype(np.int64)
    sizes = (words & np.uint64(0xFFFFFFFF)).astype(np.int64)
    live = ~slots.null
    offsets = np.where(live, offsets, 0)
    sizes = np.where(live, sizes, 0)
    starts = slots.base + offsets
    ends = starts + sizes
    if len(starts) and bool((ends > slots.end).any()):
        raise MalformedFile(
            "a value of the state points outside its row",
            "The row is damaged, or was written with another schema.",
        )
    return RowBytes(slots.data, starts, sizes)


def _expanded(slots: _Slots, decode: Any, kind: DataType) -> pa.Array:
    """Decode the values that are not null, then put the nulls between them."""
    import numpy as np
    import pyarrow as pa

    if not slots.null.any():
        return decode(slots)
    live = ~slots.null
    if not live.any():
        return pa.nulls(len(slots), arrow_type(kind))
    found = decode(slots.only(live))
    places = np.cumsum(live) - 1
    return found.take(pa.array(places, pa.int64(), mask=slots.null))


def _strings(slots: _Slots, text: bool) -> pa.Array:
    import pyarrow as pa

    raw = _binary(_pointed(slots), slots.null)
    if not text:
        return raw
    found = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.null_count)
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        # Spark accepts any bytes in a string, and shows bytes that are not UTF-8 as U+FFFD.
        values = [None if v is None else v.decode("utf-8", "replace") for v in raw.to_pylist()]
        return pa.array(values, pa.string())
    return found


def _decimals(unscaled: Any, null: Mask, kind: Decimal) -> pa.Array:
    import numpy as np

    words = np.empty((len(unscaled), 2), "<i8")
    words[:, 0] = unscaled
    words[:, 1] = unscaled >> 63
    return _decimal_array(words, null, kind)


def _decimal_array(words: Any, null: Mask, kind: Decimal) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    words[null] = 0
    found = pa.Array.from_buffers(
        arrow_type(kind),
        len(null),
        [_validity(null), pa.py_buffer(np.ascontiguousarray(words))],
        int(null.sum()),
    )
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        raise MalformedFile(
            f"a number of the state does not fit decimal({kind.precision},{kind.scale})"
        ) from None
    return found


def _large_decimals(slots: _Slots, kind: Decimal) -> pa.Array:
    """Decode Java's BigInteger bytes: big-endian, no longer than needed."""
    import numpy as np

    places = _pointed(slots)
    # A null keeps its 16 bytes, with a size of 0.
    if len(places) and int(places.lengths.max()) > 16:
        raise MalformedFile("a decimal of the state has more than 16 bytes")
    last = places.starts + places.lengths - 1
    filled = places.lengths > 0
    first = gather(slots.data, np.where(filled, places.starts, slots.at), "i1")
    fill = np.where(filled & (first < 0), 255, 0).astype(np.uint8)
    octets = np.empty((len(slots), 16), np.uint8)
    for at in range(16):
        inside = places.lengths > at
        found = gather(slots.data, np.where(inside, last - at, slots.at), "u1")
        octets[:, at] = np.where(inside, found, fill)
    return _decimal_array(octets.view("<i8"), slots.null, kind)


def _intervals(slots: _Slots) -> pa.Array:
    import pyarrow as pa

    places = _pointed(slots)
    if len(places) and int(places.lengths.min()) < 16:
        raise MalformedFile("an interval of the state has less than 16 bytes")
    parts = [
        pa.array(gather(slots.data, places.starts, "<i4")),
        pa.array(gather(slots.data, places.starts + 4, "<i4")),
        pa.array(gather(slots.data, places.starts + 8, "<i8")),
    ]
    return pa.StructArray.from_arrays(parts, ["months", "days", "microseconds"])


def _variants(slots: _Slots) -> pa.Array:
    import pyarrow as pa

    places = _pointed(slots)
    if len(places) and int(places.lengths.min()) < 4:
        raise MalformedFile("a variant of the state has less than 4 bytes")
    sizes = gather(slots.data, places.starts, "<i4").astype("int64")
    rest = places.skip(4)
    if len(sizes) and (int(sizes.min()) < 0 or bool((sizes > rest.lengths).any())):
        raise MalformedFile("a variant of the state is longer than its row")
    value = RowBytes(rest.data, rest.starts, sizes)
    metadata = RowBytes(rest.data, rest.starts + sizes, rest.lengths - sizes)
    return pa.StructArray.from_arrays([_binary(value), _binary(metadata)], ["value", "metadata"])


def _binary(rows: RowBytes, null: Mask | None = None) -> pa.Array:
    import pyarrow as pa

    found = binary_array(rows)
    if null is None or not null.any():
        return found
    _, offsets, data = found.buffers()
    return pa.Array.from_buffers(
        pa.binary(), len(rows), [_validity(null), offsets, data], int(null.sum())
    )


def _elements(arrays: RowBytes, kind: DataType) -> tuple[pa.Array, Ints]:
    """Return all elements of the arrays in one column, and the n + 1 offsets between them."""
    import numpy as np

    if len(arrays) and int(arrays.lengths.min()) < WORD:
        raise MalformedFile("an array of the state has less than 8 bytes")
    counts = gather(arrays.data, arrays.starts, "<i8")
    width = width_of(kind) or WORD
    # This is checked before any multiplication, so that a damaged count cannot overflow.
    if len(counts) and (int(counts.min()) < 0 or bool((counts > arrays.lengths * 8).any())):
        raise MalformedFile("an array of the state claims more elements than it has bytes")
    header = WORD + (counts + 63) // 64 * WORD
    if len(counts) and bool((header + counts * width > arrays.lengths).any()):
        raise MalformedFile("an array of the state claims more elements than it has bytes")
    offsets = np.zeros(len(arrays) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    total = int(offsets[-1])
    if total > _MOST_ELEMENTS:
        raise MalformedFile("more than 2 billion array elements in one piece of the state")
    index = np.arange(total, dtype=np.int64) - np.repeat(offsets[:-1], counts)
    base = np.repeat(arrays.starts, counts)
    bits = gather(arrays.data, base + WORD + (index >> 3), "u1")
    null = (bits >> (index & 7).astype(np.uint8)) & 1 != 0
    slots = _Slots(
        arrays.data,
        base + np.repeat(header, counts) + index * width,
        base,
        base + np.repeat(arrays.lengths, counts),
        null,
    )
    return _column(slots, kind), offsets


def _lists(arrays: RowBytes, kind: Array) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    elements, offsets = _elements(arrays, kind.element)
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), elements, type=arrow_type(kind)
    )


def _maps(maps: RowBytes, kind: Map) -> pa.Array:
    """Decode maps: the byte size of the key array, that array, and the array of values."""
    import numpy as np
    import pyarrow as pa

    if len(maps) and int(maps.lengths.min()) < WORD:
        raise MalformedFile("a map of the state has less than 8 bytes")
    sizes = gather(maps.data, maps.starts, "<i8")
    rest = maps.skip(WORD)
    if len(sizes) and (int(sizes.min()) < 0 or bool((sizes > rest.lengths).any())):
        raise MalformedFile("a map of the state is longer than its row")
    keys, offsets = _elements(RowBytes(rest.data, rest.starts, sizes), kind.key)
    values, others = _elements(
        RowBytes(rest.data, rest.starts + sizes, rest.lengths - sizes), kind.value
    )
    if not np.array_equal(offsets, others):
        raise MalformedFile("a map of the state has different numbers of keys and values")
    if keys.null_count:
        raise MalformedFile("a map of the state has a null key")
    return pa.MapArray.from_arrays(
        pa.array(offsets.astype(np.int32)), keys, values, type=arrow_type(kind)
    )
