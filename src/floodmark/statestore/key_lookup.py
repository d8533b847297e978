"""Finds the rows of one key in a state: in the partition that Spark's hash names, then elsewhere.

A plain key is encoded and compared without Arrow, which takes longer to load than to answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from floodmark.errors import NoAnswer, WrongUse
from floodmark.state.files.records import one_record
from floodmark.state.keys.partitioning import partition_of
from floodmark.state.rows.one_row import decode_row, encode_row, partition_of_row
from floodmark.state.rows.types import Struct, arrow_type
from floodmark.state.rows.values import coerce
from floodmark.state.shapes.operators import Shape
from floodmark.state.shapes.schema import PLAIN
from floodmark.statestore.view import plain_rows, rows_in_order, shown_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from floodmark.statestore.view import StateView


class KeyNotThere(NoAnswer):
    """Raised if the state has no such key."""


def rows_of_key(view: StateView, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of one key; a list and a map have several.

    With some of the key's fields, the rows of all keys that have these values.
    """
    if _is_part(view.key_type, key):
        return _by_some_fields(view, key)
    try:
        wanted = coerce(key, view.key_type)
    except WrongUse as error:
        error.do = view.hint or error.do
        raise
    found = _by_bytes(view, wanted)
    if found is None:
        found = _by_arrow(view, wanted)
    if found:
        return found
    raise _not_there(view)


def _by_some_fields(view: StateView, key: Mapping[str, Any]) -> list[dict[str, Any]]:
    from floodmark.state.keys.some_key_fields import PartOfKey

    part = PartOfKey(view.key_type, key)
    found = [
        row
        for batch in rows_in_order(view)
        for at in part.matching(batch.column(1))
        for row in plain_rows(batch.slice(at, 1))
    ]
    if found:
        return found
    raise _not_there(view)


def _not_there(view: StateView) -> KeyNotThere:
    return KeyNotThere(
        f"operator {view.operator}, store {view.store}: no such key after batch {view.batch}",
        f"The key's fields are {view.key_schema}.",
        "Check the value, or choose another batch.",
    )


def _by_bytes(view: StateView, wanted: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Look the key up without Arrow, which takes longer to load than the lookup itself.

    None is no answer: the key must then be looked up in the other way.
    """
    if view.reading.shape is not Shape.PAIRS or view.reading.schema is None:
        return None
    row = encode_row(wanted, view.key_type)
    if row is None:
        return None
    likely = partition_of_row(row, _hashed_key(view), max(len(view.partitions), 1))
    for partition in _from(view, likely):
        with view.at.open(partition) as opened:
            layout = view.layout(opened)
            if not (layout.has_plain_keys and layout.has_plain_values):
                return None
            value = opened.get(layout.stored_key(row))
        if value is not None:
            shown = decode_row(layout.bare_value(value), view.value_type)
            key = decode_row(row, view.key_type)
            found = {"partition": partition, "key": key, "value": shown}
            return None if shown is None else [found]
    return []


def _by_arrow(view: StateView, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    import pyarrow as pa

    key = pa.array([wanted], arrow_type(view.key_type))
    likely = 0
    if view.reading.key is not None and view.partitions:
        likely = partition_of(key[0], _hashed_key(view), len(view.partitions))
    for partition in _from(view, likely):
        found = _in_partition(view, partition, key)
        if found:
            return found
    return []


def _hashed_key(view: StateView) -> Struct:
    """The columns whose hash decides a key's partition."""
    encoding = view.reading.schema.encoding if view.reading.schema else PLAIN
    if view.reading.shape is Shape.PAIRS and encoding.prefix_columns:
        return Struct(view.key_type.fields[: encoding.prefix_columns])
    return view.key_type


def _from(view: StateView, likely: int) -> list[int]:
    """Return all partitions, the likely one first."""
    return sorted(view.partitions, key=lambda partition: partition != likely)


def _in_partition(view: StateView, partition: int, wanted: pa.Array) -> list[dict[str, Any]]:
    with view.at.open(partition) as opened:
        layout = view.layout(opened)
        if view.reading.shape in (Shape.PAIRS, Shape.LIST):
            encoded = layout.encode_key(wanted[0].as_py()) if _is_exact(wanted) else None
            if encoded is not None:
                value = opened.get(encoded)
                if value is None:
                    return []
                found = one_record(encoded, value)
                return plain_rows(shown_batch(view, partition, layout, found, None))
    return _by_every_row(view, partition, wanted)


def _by_every_row(view: StateView, partition: int, wanted: pa.Array) -> list[dict[str, Any]]:
    """Compare every row, by the bytes of its key."""
    import numpy as np

    from floodmark.state.keys.keyset import hash_rows
    from floodmark.state.rows.unsaferow_write import encode_rows

    aim = hash_rows(encode_rows(wanted, view.key_type))
    found: list[dict[str, Any]] = []
    for batch in view.partition_batches(partition):
        hashes = hash_rows(encode_rows(batch.column(1), view.key_type))
        rows = np.nonzero((hashes == aim).all(axis=0))[0]
        for row in rows.tolist():
            found += plain_rows(batch.slice(row, 1))
    return found


def _is_exact(wanted: pa.Array) -> bool:
    # Arrow returns a map among the key's columns as pairs, which is fine. It cannot return a
    # time outside Python's years.
    try:
        wanted.to_pylist()
    except (OverflowError, ValueError):
        return False
    return True


def _is_part(key_type: Struct, wanted: Mapping[str, Any]) -> bool:
    """Whether only some of the key's fields are given, and nothing else."""
    names = set(key_type.names)
    return bool(wanted) and set(wanted) < names and len(names) == len(key_type.names)
