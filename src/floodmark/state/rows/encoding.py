"""Encodes Arrow rows as a store's raw rows: the reverse of `Layout`.

Keys are compared and sorted by their bytes, so every byte must be as Spark's own encoders write it:
the version byte, the parts that are scanned by prefix or range, the number of the column family,
checksums.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from floodmark.errors import WrongUse
from floodmark.state.files.crc32c import crc_rows
from floodmark.state.files.records import Records
from floodmark.state.rows.layout import NEGATIVE, NULL, POSITIVE, RANGE_NUMBERS, Layout
from floodmark.state.rows.rowbytes import RowBytes, as_bytes, joined, row_bytes
from floodmark.state.rows.types import BINARY, Atom, Field, Struct, arrow_type
from floodmark.state.rows.unsaferow_write import encode_rows

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = b"\x00"
"""The byte before every row in RocksDB, which says how the rest is encoded."""


def encode(
    layout: Layout, keys: pa.Array, values: pa.Array, key_id: int = 0, value_id: int = 0
) -> Records:
    """Return rows as the store keeps them. `key_id` and `value_id` number Avro's schemas.

    If values have elements, rows of one key follow each other, with one element each.
    """
    import numpy as np

    stored_keys = encode_keys(layout, keys, key_id)
    stored_values = _encode_values(layout, values, value_id)
    if layout.has_elements:
        stored_keys, stored_values = _gathered(layout, stored_keys, stored_values)
    elif layout.row_checksums:
        stored_values = with_checksums(layout, stored_keys, stored_values)
    return Records(stored_keys, stored_values, np.zeros(len(stored_keys), bool))


def encode_keys(layout: Layout, keys: pa.Array, key_id: int = 0) -> RowBytes:
    schema = layout.key
    assert schema is not None
    if not layout.rocksdb:
        return encode_rows(keys, schema)
    kind = layout.encoding.kind
    if kind == "PrefixKeyScanStateEncoderSpec":
        parts = _prefixed(layout, _typed(keys, schema), schema, key_id)
    elif kind == "RangeKeyScanStateEncoderSpec":
        parts = _ranged(layout, _typed(keys, schema), schema, key_id)
    elif kind.startswith("Timestamp"):
        parts = _timed(layout, _typed(keys, schema), schema, key_id)
    else:
        parts = [_row(layout, keys, schema, key_id)]
    family = [] if layout.family is None else [struct.pack("<h", layout.family)]
    return joined([*family, *parts])


def _typed(keys: pa.Array, schema: Struct) -> pa.Array:
    wanted = arrow_type(schema)
    return keys if keys.type == wanted else keys.cast(wanted)


def _row(layout: Layout, rows: pa.Array, schema: Struct, schema_id: int | None) -> RowBytes:
    if not layout.avro:
        return joined([VERSION, encode_rows(rows, schema)])
    number = b"" if schema_id is None else struct.pack("<h", schema_id)
    from floodmark.state.rows.avro_write import encode_avro

    return row_bytes(VERSION + number + encode_avro(row, schema) for row in _typed(rows, schema))


def _columns(rows: pa.Array, schema: Struct, chosen: list[int]) -> tuple[pa.Array, Struct]:
    import pyarrow as pa

    fields = Struct(tuple(schema.fields[at] for at in chosen))
    parts = rows.flatten()
    if not chosen:
        return pa.array([{}] * len(rows), pa.struct([])), fields
    return pa.StructArray.from_arrays(
        [parts[at] for at in chosen], fields=list(arrow_type(fields))
    ), fields


def _prefixed(
    layout: Layout, keys: pa.Array, schema: Struct, key_id: int
) -> list[RowBytes | bytes]:
    count = layout.encoding.prefix_columns
    first = _row(layout, *_columns(keys, schema, list(range(count))), None)
    rest = _row(layout, *_columns(keys, schema, list(range(count, len(schema.fields)))), key_id)
    return [_sizes(first), first, rest]


def _ranged(layout: Layout, keys: pa.Array, schema: Struct, key_id: int) -> list[RowBytes | bytes]:
    ordering = layout.encoding.ordering
    parts = keys.flatten()
    ordered = [[_ordered(value, schema.fields[at]) for value in parts[at]] for at in ordering]
    first = _range_row(layout, ordered, [schema.fields[at] for at in ordering])
    others = [at for at in range(len(schema.fields)) if at not in ordering]
    return [_sizes(first), first, _row(layout, *_columns(keys, schema, others), key_id)]


def _range_row(layout: Layout, ordered: list[list[bytes]], fields: list[Field]) -> RowBytes:
    import pyarrow as pa

    if layout.avro:
        pairs = [(column, cut) for column in ordered for cut in (slice(0, 1), slice(1, None))]
        flat = Struct(tuple(Field(f"c{at}", BINARY) for at in range(len(pairs))))
        columns = [pa.array([value[cut] for value in column], pa.binary()) for column, cut in pairs]
    else:
        flat = Struct(tuple(Field(field.name, BINARY) for field in fields))
        columns = [pa.array(column, pa.binary()) for column in ordered]
    rows = pa.StructArray.from_arrays(columns, fields=list(arrow_type(flat)))
    return _row(layout, rows, flat, None)


def _ordered(value: Any, field: Field) -> bytes:
    """Encode a number so that its bytes sort like it: a mark for its sign, then big-endian."""
    layout = RANGE_NUMBERS.get(field.type.name) if isinstance(field.type, Atom) else None
    if layout is None:
        raise WrongUse(
            f"a key cannot be ordered by {field.name}: the bytes of its type have no order"
        )
    if not value.is_valid:
        return bytes([NULL]) + bytes(struct.calcsize(layout))
    body = struct.pack(layout, value.as_py())
    if layout not in (">f", ">d"):
        return bytes([NEGATIVE if body[0] & 0x80 else POSITIVE]) + body
    if body[0] & 0x80:
        return bytes([NEGATIVE]) + bytes(octet ^ 0xFF for octet in body)
    return bytes([POSITIVE]) + body


def _timed(layout: Layout, keys: pa.Array, schema: Struct, key_id: int) -> list[RowBytes | bytes]:
    import numpy as np
    import pyarrow as pa

    last = len(schema.fields) - 1
    times = keys.flatten()[last].cast(pa.int64()).to_numpy(zero_copy_only=False)
    flipped = (times.view("<u8") ^ np.uint64(1 << 63)).astype(">u8")
    column = _words(flipped.tobytes(), len(times), 8)
    row = _row(layout, *_columns(keys, schema, list(range(last))), key_id)
    before = layout.encoding.kind.startswith("TimestampAsPrefix")
    return [column, row] if before else [row, column]


def _sizes(rows: RowBytes) -> RowBytes:
    """Return each row's length, as a row of four bytes."""
    return _words(rows.lengths.astype("<i4").tobytes(), len(rows), 4)


def _words(data: bytes, count: int, width: int) -> RowBytes:
    import numpy as np

    return RowBytes(
        as_bytes(data), np.arange(count, dtype=np.int64) * width, np.full(count, width, np.int64)
    )


def _encode_values(layout: Layout, values: pa.Array, value_id: int) -> RowBytes:
    schema = layout.value
    assert schema is not None
    if not layout.rocksdb:
        return encode_rows(values, schema)
    return _row(layout, values, schema, value_id)


def with_checksums(layout: Layout, keys: RowBytes, values: RowBytes) -> RowBytes:
    """Put the CRC of key and value before each value."""
    crcs = crc_rows(values, crc_rows(keys)).astype("<u4").tobytes()
    parts: list[RowBytes | bytes] = [_words(crcs, len(keys), 4)]
    if layout.rocksdb:
        parts.append(_sizes(values))
    return joined([*parts, values])


def _gathered(layout: Layout, keys: RowBytes, elements: RowBytes) -> tuple[RowBytes, RowBytes]:
    """Join the elements of each key, each after its length."""
    sized = joined([_sizes(elements), elements])
    if layout.row_checksums:
        sized = with_checksums(layout, keys, sized)
    lists: dict[bytes, list[bytes]] = {}
    for key, element in zip(keys.to_list(), sized.to_list(), strict=True):
        lists.setdefault(key, []).append(element)
    return row_bytes(lists), row_bytes(layout.delimiter.join(items) for items in lists.values())
