"""Decodes the keys and values in a store's raw rows to Arrow.

HDFS files hold plain UnsafeRows. RocksDB puts the number of the column family and a version byte
before them, splits keys that are scanned by prefix or range, and joins the elements of a list in
one value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from floodmark.errors import MalformedFile
from floodmark.state.files.hdfs import StateChecksumFailed
from floodmark.state.files.records import Records
from floodmark.state.rows.rowbytes import RowBytes, gather, row_bytes
from floodmark.state.rows.types import BINARY, Atom, Field, Struct, arrow_type
from floodmark.state.rows.unsaferow import bitset_width, decode_rows
from floodmark.state.shapes.schema import PLAIN, KeyEncoding

if TYPE_CHECKING:
    import pyarrow as pa

BYTES = Struct((Field("bytes", BINARY),))
"""The schema to show if none is known."""

NEGATIVE, POSITIVE, NULL = 0, 1, 2
RANGE_NUMBERS = {
    "byte": ">b",
    "short": ">h",
    "integer": ">i",
    "long": ">q",
    "float": ">f",
    "double": ">d",
}


@dataclass(frozen=True)
class Layout:
    key: Struct | None
    value: Struct | None
    rocksdb: bool = False
    encoding: KeyEncoding = PLAIN
    family: int | None = None
    """The column family's number, if keys begin with one."""
    has_elements: bool = False
    """Whether a value holds the joined elements of a list state."""
    delimiter: bytes = b","
    row_checksums: bool = False
    avro: bool = False
    written: Mapping[int, Struct] = field(default_factory=dict)
    """Avro: the value schemas that rows may have been written with, by their ids."""

    def mine(self, records: Records) -> Records:
        """Return the records of this column family."""
        import numpy as np

        if self.family is None:
            return records
        if len(records) and int(records.keys.lengths.min()) < 2:
            raise MalformedFile("a key of the state is too short for its column family")
        numbers = gather(records.keys.data, records.keys.starts, "<i2")
        return records.take(np.nonzero(numbers == self.family)[0])

    def decode(self, records: Records) -> tuple[pa.Array, pa.Array]:
        """Return the keys and the values, one element each if values have several."""
        records = self.mine(records)
        values = self.checked_values(records)
        keys = records.keys if self.family is None else records.keys.skip(2)
        if self.has_elements:
            owners, values = _elements(values, self.delimiter)
            keys = keys.take(owners)
        return self.decode_keys(keys), self._decode_values(values)

    def misfit(self, records: Records) -> str | None:
        """Return why plain rows cannot have this schema; None if nothing contradicts it."""
        from floodmark.state.rows.fitting import misfit

        records = self.mine(records)
        keys = records.keys if self.family is None else records.keys.skip(2)
        values = self.checked_values(records)
        if self.rocksdb:
            keys, values = keys.skip(1), values.skip(1)
        assert self.key is not None
        assert self.value is not None
        if why := misfit(keys, self.key):
            return f"the keys: {why}"
        if not _are_empty(values, self.value) and (why := misfit(values, self.value)):
            return f"the values: {why}"
        return None

    def checked_values(self, records: Records) -> RowBytes:
        """Return the values, without the checksums in RocksDB's values."""
        if not (self.rocksdb and self.row_checksums):
            return records.values
        return _without_checksums(records, self.delimiter)

    def decode_keys(self, keys: RowBytes) -> pa.Array:
        if self.key is None:
            return _as_bytes(keys)
        if not self.rocksdb:
            return decode_rows(keys, self.key)
        kind = self.encoding.kind
        if kind == "PrefixKeyScanStateEncoderSpec":
            return self._prefixed(keys, self.key)
        if kind == "RangeKeyScanStateEncoderSpec":
            return self._ranged(keys, self.key)
        if kind.startswith("Timestamp"):
            return self._timed(keys, self.key)
        return self._row(keys, self.key, with_id=True)

    def _row(self, rows: RowBytes, schema: Struct, with_id: bool) -> pa.Array:
        """Decode a version byte and a row; Avro also names the schema that wrote it."""
        rows = rows.skip(1)
        if not self.avro:
            return decode_rows(rows, schema)
        from floodmark.state.rows.avro import decode_avro

        rows = rows.skip(2) if with_id else rows
        return _arrow([decode_avro(row, schema) for row in rows.to_list()], schema)

    def _decode_values(self, values: RowBytes) -> pa.Array:
        import pyarrow as pa

        if self.value is None:
            return _as_bytes(values)
        if not self.avro:
            rows = values.skip(1) if self.rocksdb else values
            if _are_empty(rows, self.value):
                wanted = list(arrow_type(self.value))
                nothing = [pa.nulls(len(rows), field.type) for field in wanted]
                return pa.StructArray.from_arrays(nothing, fields=wanted)
            return decode_rows(rows, self.value)
        return _arrow([self._avro_value(row) for row in values.skip(1).to_list()], self.value)

    def _avro_value(self, row: bytes) -> dict[str, Any]:
        assert self.value is not None
        if len(row) < 2:
            raise MalformedFile("an Avro row of the state has no schema id")
        (number,) = struct.unpack_from("<h", row)
        written = self.written.get(number)
        if written is None:
            raise MalformedFile(
                f"a row was written with schema {number}, but no schema file has it",
                "A schema file is missing, or the checkpoint was moved without one.",
            )
        from floodmark.state.rows.avro import decode_avro, project

        return project(decode_avro(row[2:], written), self.value)

    def _split(self, keys: RowBytes) -> tuple[RowBytes, RowBytes]:
        """Split a key into its first part, whose length comes first, and the rest."""
        import numpy as np

        rest = keys.skip(4)
        sizes = gather(keys.data, keys.starts, "<i4").astype(np.int64)
        if len(sizes) and (int(sizes.min()) < 0 or bool((sizes > rest.lengths).any())):
            raise MalformedFile("a key of the state is shorter than its first part")
        first = RowBytes(rest.data, rest.starts, sizes)
        return first, RowBytes(rest.data, rest.starts + sizes, rest.lengths - sizes)

    def _prefixed(self, keys: RowBytes, schema: Struct) -> pa.Array:
        count = self.encoding.prefix_columns
        first, rest = self._split(keys)
        parts = [
            *self._row(first, Struct(schema.fields[:count]), with_id=False).flatten(),
            *self._row(rest, Struct(schema.fields[count:]), with_id=True).flatten(),
        ]
        return _struct(parts, schema)

    def _ranged(self, keys: RowBytes, schema: Struct) -> pa.Array:
        ordering = self.encoding.ordering
        first, rest = self._split(keys)
        ordered = [schema.fields[at] for at in ordering]
        others = [at for at in range(len(schema.fields)) if at not in ordering]
        columns: dict[int, pa.Array] = {}
        for at, values in zip(ordering, self._range_values(first, ordered), strict=True):
            columns[at] = _arrow_column(values, schema.fields[at])
        if others:
            remaining = self._row(rest, Struct(tuple(schema.fields[at] for at in others)), True)
            columns.update(zip(others, remaining.flatten(), strict=True))
        return _struct([columns[at] for at in range(len(schema.fields))], schema)

    def _range_values(self, rows: RowBytes, fields: list[Field]) -> list[list[Any]]:
        if self.avro:
            from floodmark.state.rows.avro import decode_avro

            names = [(f"{f.name}_marker", f"{f.name}_value") for f in fields]
            flat = Struct(tuple(Field(name, BINARY) for pair in names for name in pair))
            found = [decode_avro(row, flat) for row in rows.skip(1).to_list()]
            return [
                [_number((row[m] or b"") + (row[v] or b""), f) for row in found]
                for (m, v), f in zip(names, fields, strict=True)
            ]
        parts = decode_rows(rows.skip(1), Struct(tuple(Field(f.name, BINARY) for f in fields)))
        return [
            [_number(value, f) for value in part.to_pylist()]
            for part, f in zip(parts.flatten(), fields, strict=True)
        ]

    def _timed(self, keys: RowBytes, schema: Struct) -> pa.Array:
        """Decode keys whose last column is a time, kept apart so that RocksDB sorts by it."""
        import numpy as np
        import pyarrow as pa

        before = self.encoding.kind.startswith("TimestampAsPrefix")
        rest = keys.skip(8) if before else keys.trim(8)
        at = keys.starts if before else keys.starts + keys.lengths - 8
        times = gather(keys.data, at, ">u8") ^ np.uint64(1 << 63)
        row = self._row(rest, Struct(schema.fields[:-1]), with_id=True)
        column = pa.array(times.astype("<u8").view("<i8"), pa.int64())
        return _struct([*row.flatten(), column.cast(arrow_type(schema.fields[-1].type))], schema)

    @property
    def has_plain_keys(self) -> bool:
        """Whether a key's bytes are its row, with nothing but a prefix before it."""
        plain = self.encoding.is_plain or not self.rocksdb
        return self.key is not None and plain and not self.avro

    @property
    def has_plain_values(self) -> bool:
        return not (self.avro or self.has_elements or (self.rocksdb and self.row_checksums))

    def encode_key(self, key: Mapping[str, Any]) -> bytes | None:
        """Return the bytes of a key in the store; None if it must be searched for."""
        import pyarrow as pa

        if self.key is None or not self.has_plain_keys:
            return None
        from floodmark.state.rows.unsaferow_write import encode_rows

        return self.stored_key(
            encode_rows(pa.array([dict(key)], arrow_type(self.key)), self.key)[0]
        )

    def stored_key(self, row: bytes) -> bytes:
        if not self.rocksdb:
            return row
        prefix = b"" if self.family is None else struct.pack("<h", self.family)
        return prefix + b"\x00" + row

    def bare_value(self, value: bytes) -> bytes:
        return value[1:] if self.rocksdb else value


def _are_empty(rows: RowBytes, schema: Struct) -> bool:
    """Whether all values are the single null of deduplication; Spark 3 noted another schema."""
    fixed = bitset_width(len(schema.fields)) + 8 * len(schema.fields)
    if fixed == 16 or not len(rows) or bool((rows.lengths != 16).any()):
        return False
    return bool(
        (gather(rows.data, rows.starts, "<u8") == 1).all()
        and (gather(rows.data, rows.starts + 8, "<u8") == 0).all()
    )


def _number(value: bytes, field: Field) -> Any:
    layout = RANGE_NUMBERS.get(field.type.name) if isinstance(field.type, Atom) else None
    if layout is None or not value:
        raise MalformedFile(f"a key is ordered by {field.name}, whose bytes have no order")
    if value[0] == NULL:
        return None
    body = value[1:]
    if len(body) != struct.calcsize(layout):
        raise MalformedFile(f"a key's {field.name} has {len(body)} bytes")
    if value[0] == NEGATIVE and layout in (">f", ">d"):
        body = bytes(octet ^ 0xFF for octet in body)
    return struct.unpack(layout, body)[0]


def _struct(parts: list[pa.Array], schema: Struct) -> pa.Array:
    import pyarrow as pa

    return pa.StructArray.from_arrays(parts, fields=list(arrow_type(schema)))


def _arrow(rows: list[dict[str, Any]], schema: Struct) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(rows, arrow_type(schema))
    except (pa.ArrowInvalid, OverflowError, ValueError, TypeError) as error:
        raise MalformedFile(f"an Avro row of the state does not fit its schema: {error}") from None


def _arrow_column(values: list[Any], field: Field) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, arrow_type(field.type))


def _as_bytes(rows: RowBytes) -> pa.Array:
    import pyarrow as pa

    from floodmark.state.rows.rowbytes import binary_array

    return pa.StructArray.from_arrays([binary_array(rows)], ["bytes"])


def _elements(values: RowBytes, delimiter: bytes) -> tuple[Any, RowBytes]:
    """Split `{ size element delimiter }`: return each element's value index, and the elements."""
    import numpy as np

    owners: list[int] = []
    starts: list[int] = []
    sizes: list[int] = []
    whole = memoryview(values.data.data)
    for owner, (start, length) in enumerate(
        zip(values.starts.tolist(), values.lengths.tolist(), strict=True)
    ):
        at, end = start, start + length
        while at < end:
            size = struct.unpack_from("<i", whole, at)[0] if at + 4 <= end else -1
            if size < 0 or at + 4 + size > end:
                raise MalformedFile("a list of the state is cut short")
            owners.append(owner)
            starts.append(at + 4)
            sizes.append(size)
            at += 4 + size + len(delimiter)
    return np.array(owners, np.int64), RowBytes(
        values.data, np.array(starts, np.int64), np.array(sizes, np.int64)
    )


def _without_checksums(records: Records, delimiter: bytes) -> RowBytes:
    """Check `{ crc size row delimiter }`, and return the rows with their delimiters."""
    keys: list[bytes] = []
    rows: list[bytes] = []
    written: list[int] = []
    owners: list[list[int]] = []
    for key, value in zip(records.keys.to_list(), records.values.to_list(), strict=True):
        at = 0
        owners.append([])
        while at < len(value):
            crc, size = struct.unpack_from("<Ii", value, at) if at + 8 <= len(value) else (0, -1)
            if size < 0 or at + 8 + size > len(value):
                raise MalformedFile("a row with a checksum is cut short")
            owners[-1].append(len(rows))
            keys.append(key)
            rows.append(value[at + 8 : at + 8 + size])
            written.append(crc)
            at += 8 + size + len(delimiter)
    from floodmark.state.files.crc32c import crc_rows

    found = crc_rows(row_bytes(rows), crc_rows(row_bytes(keys))).tolist()
    wrong = sum(a != b for a, b in zip(found, written, strict=True))
    if wrong:
        raise StateChecksumFailed(
            f"{wrong} of {len(rows)} rows do not match their checksum",
            "The files were damaged after Spark wrote them.",
        )
    return row_bytes(delimiter.join(rows[at] for at in mine) for mine in owners)
