"""Converts rows between the form of a user's function or table and the form of a store.

Most are a key and a value in both forms. A list is one row for each key, with its elements in an
array, because the rows of a table have no order. A map is one row for each entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.state.rows.types import Array, Field, Struct, arrow_type
from floodmark.state.rows.unsaferow_write import encode_rows
from floodmark.state.shapes.operators import Reading, Shape

if TYPE_CHECKING:
    import pyarrow as pa

ELEMENTS = "elements"
MAP_KEY = "user_map_key"
GIVEN = (Shape.PAIRS, Shape.LIST, Shape.MAP)
"""The shapes whose rows a user can give."""


def given_key(reading: Reading) -> Struct:
    assert reading.key is not None
    return reading.key


def given_value(reading: Reading) -> Struct:
    if reading.shape is Shape.LIST:
        assert reading.schema is not None
        return Struct((Field(ELEMENTS, Array(reading.schema.value, False), False),))
    assert reading.value is not None
    return reading.value


def identity(reading: Reading) -> Struct:
    """Return what is unique in each row: the key, and for a map also its own key."""
    if reading.shape is Shape.MAP:
        assert reading.schema is not None
        return reading.schema.key
    return given_key(reading)


def gathered(reading: Reading, keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return rows of a state view in the user's form: a list's elements in one row."""
    import pyarrow as pa

    if reading.shape is not Shape.LIST:
        return keys, values
    rows = encode_rows(keys, given_key(reading)).to_list()
    firsts = [at for at, row in enumerate(rows) if not at or row != rows[at - 1]]
    offsets = pa.array([*firsts, len(rows)], pa.int32())
    kind = arrow_type(given_value(reading))
    lists = pa.ListArray.from_arrays(offsets, values.field(0)).cast(kind[0].type)
    return keys.take(pa.array(firsts, pa.int32())), pa.StructArray.from_arrays(
        [lists], fields=[kind[0]]
    )


def kept(reading: Reading, keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the user's rows as the store keeps them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    assert reading.schema is not None
    if reading.shape is Shape.LIST:
        lists = values.field(0)
        return keys.take(pc.list_parent_indices(lists)), pc.list_flatten(lists)
    if reading.shape is Shape.MAP:
        fields = list(arrow_type(reading.schema.key))
        return pa.StructArray.from_arrays([keys, values.field(0)], fields=fields), values.field(1)
    return keys, values
