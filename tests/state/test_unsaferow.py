"""UnsafeRow to Arrow and back, for every type, nulls and nesting included."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floodmark.errors import FloodmarkError, MalformedFile
from floodmark.state.rows.rowbytes import RowBytes, as_bytes, row_bytes
from floodmark.state.rows.types import (
    Array,
    Decimal,
    Map,
    Struct,
    arrow_type,
    atom,
)
from floodmark.state.rows.unsaferow import decode_rows
from floodmark.state.rows.unsaferow_write import encode_rows
from state.drawn_rows import SCHEMAS, TABLES, struct_of


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(TABLES)
def test_every_type_comes_back(table: tuple[Struct, list[Any]]) -> None:
    schema, rows = table
    array = pa.array(rows, arrow_type(schema))
    encoded = encode_rows(array, schema)
    assert decode_rows(encoded, schema).to_pylist() == array.to_pylist()
    # A row does not depend on its neighbours, nor on where its column begins.
    last = encode_rows(array.slice(len(array) - 1), schema)
    assert last[0] == encoded[len(array) - 1]


@settings(max_examples=200)
@given(SCHEMAS, st.lists(st.binary(max_size=120), min_size=1, max_size=4))
def test_random_bytes_are_read_or_refused_in_words(schema: Struct, rows: list[bytes]) -> None:
    try:
        decode_rows(row_bytes(rows), schema).validate(full=True)
    except FloodmarkError:
        return


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(TABLES, st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_read_or_refused_in_words(
    table: tuple[Struct, list[Any]], at: int, change: int
) -> None:
    schema, rows = table
    encoded = encode_rows(pa.array(rows, arrow_type(schema)), schema)
    data = encoded.data.copy()
    data[at % len(data)] ^= change
    try:
        decode_rows(RowBytes(data, encoded.starts, encoded.lengths), schema)
    except FloodmarkError:
        return


# Worked out by hand from the layout: (7, "hello", null) under (int, string, long).
KNOWN = bytes.fromhex(
    "040000000000000007000000000000000500000020000000000000000000000068656c6c6f000000"
)


def test_the_layout_is_sparks() -> None:
    schema = struct_of([atom("integer"), atom("string"), atom("long")])
    array = pa.array([{"c0": 7, "c1": "hello", "c2": None}], arrow_type(schema))
    assert encode_rows(array, schema)[0] == KNOWN
    assert decode_rows(row_bytes([KNOWN]), schema).to_pylist() == array.to_pylist()


def test_a_null_large_decimal_keeps_its_place() -> None:
    encoded = encode_rows(
        pa.array([{"c0": None}], arrow_type(struct_of([Decimal(20, 0)]))),
        struct_of([Decimal(20, 0)]),
    )
    assert encoded[0].hex() == "0100000000000000" + "0000000010000000" + "00" * 16


def test_a_row_shorter_than_its_schema_is_refused() -> None:
    schema = struct_of([atom("long")] * 6)
    with pytest.raises(MalformedFile, match="at least 56"):
        decode_rows(row_bytes([KNOWN]), schema)


def test_bytes_that_are_not_utf8_are_shown_as_spark_shows_them() -> None:
    schema = struct_of([atom("string")])
    row = bytes.fromhex("0000000000000000020000001000000061ff000000000000")
    assert decode_rows(row_bytes([row]), schema).to_pylist() == [{"c0": "a�"}]


def test_no_rows() -> None:
    schema = struct_of([atom("string"), Array(atom("long")), Map(atom("long"), Decimal(30, 2))])
    empty = RowBytes(as_bytes(b""), *(pa.array([], pa.int64()).to_numpy(),) * 2)
    assert decode_rows(empty, schema).to_pylist() == []
    assert len(encode_rows(pa.array([], arrow_type(schema)), schema)) == 0
