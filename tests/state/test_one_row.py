"""One row in plain Python is what the columns' codec makes of it, or no answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floodmark.errors import FloodmarkError
from floodmark.state.keys.partitioning import partition_of
from floodmark.state.rows.one_row import decode_row, encode_row, partition_of_row
from floodmark.state.rows.rowbytes import row_bytes
from floodmark.state.rows.types import Array, Decimal, Struct, arrow_type, atom
from floodmark.state.rows.unsaferow import decode_rows
from floodmark.state.rows.unsaferow_write import encode_rows
from floodmark.state.rows.values import coerce, plain
from state.drawn_rows import SCHEMAS, TABLES, struct_of

SIMPLE = [
    *(atom(n) for n in ("boolean", "byte", "short", "integer", "long", "float", "double")),
    *(atom(n) for n in ("date", "timestamp", "timestamp_ntz", "string", "binary")),
    Decimal(18, 3),
]
VALUES = {
    "c0": True,
    "c1": -128,
    "c2": -32768,
    "c3": 7,
    "c4": -(2**63),
    "c5": 0.5,
    "c6": -0.0,
    "c7": "1969-12-31",
    "c8": "2026-03-01T10:00:00.000001Z",
    "c9": "0001-01-01T00:00:00",
    "c10": "änn",
    "c11": "AAECAw==",
    "c12": "-12.5",
}


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(TABLES)
def test_it_agrees_with_the_columns(table: tuple[Struct, list[Any]]) -> None:
    schema, rows = table
    array = pa.array(rows, arrow_type(schema))
    encoded = encode_rows(array, schema)
    for number, row in enumerate(rows):
        mine = encode_row(row, schema)
        assert mine in (None, encoded[number])
        if mine is not None:
            assert partition_of_row(mine, schema, 7) == partition_of(array[number], schema, 7)
        assert decode_row(encoded[number], schema) in (None, plain(array[number]))


@settings(max_examples=200)
@given(SCHEMAS, st.binary(max_size=120))
def test_random_bytes_are_never_read_otherwise(schema: Struct, row: bytes) -> None:
    found = decode_row(row, schema)
    try:
        wanted = plain(decode_rows(row_bytes([row]), schema)[0])
    except FloodmarkError:
        wanted = None
    assert found in (None, wanted)


@pytest.mark.parametrize("nulls", [False, True])
def test_what_keys_are_mostly_made_of_needs_no_other_way(nulls: bool) -> None:
    schema = struct_of(SIMPLE)
    values = dict.fromkeys(VALUES) if nulls else coerce(VALUES, schema)

    row = encode_row(values, schema)

    assert row is not None
    assert row == encode_rows(pa.array([values], arrow_type(schema)), schema)[0]
    assert decode_row(row, schema) == plain(decode_rows(row_bytes([row]), schema)[0])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Array(atom("long")), [1]),
        (atom("long"), 2**63),
        (atom("integer"), 1.5),
        (atom("double"), float("nan")),
        (atom("timestamp"), 7),
    ],
    ids=str,
)
def test_what_is_not_simple_is_left_to_the_other_way(kind: Any, value: Any) -> None:
    assert encode_row({"c0": value}, struct_of([kind])) is None


@pytest.mark.parametrize("provider", ["hdfs", "rocksdb"])
def test_one_key_is_found_without_arrow(provider: str) -> None:
    place = Path(__file__).parents[1] / "golden" / "4.2" / f"sales-{provider}" / "checkpoint"
    script = (
        "import json, sys, floodmark\n"
        f"view = floodmark.open({str(place)!r}).state()\n"
        "key = json.loads(sys.argv[1])\n"
        "print(json.dumps(view.lookup(key)))\n"
        "print('pyarrow' in sys.modules or 'pandas' in sys.modules)"
    )
    import floodmark

    row = floodmark.open(str(place)).state().rows(1)[0]
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(row["key"])],
        capture_output=True,
        text=True,
        check=True,
    )
    found, loaded = done.stdout.splitlines()

    assert json.loads(found) == [row]
    assert loaded == "False"
