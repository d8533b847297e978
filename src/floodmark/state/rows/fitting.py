"""Decides whether rows can have been written with a given schema.

The bytes of a row show how many fields it has and how wide they are, but not their names: Spark
writes the slots, then the variable parts in the order of their fields, without gaps. Types that
fill their slot (BIGINT, DOUBLE, TIMESTAMP, a small DECIMAL) look alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from floodmark.state.rows.rowbytes import RowBytes, gather
from floodmark.state.rows.types import Array, Atom, DataType, Decimal, Map, Struct, stored
from floodmark.state.rows.unsaferow import WORD, bitset_width

if TYPE_CHECKING:
    from floodmark.state.rows.rowbytes import Ints

# Spark reserves this room for them in every row, also for nulls.
_KEPT_ROOM = 16


def same_bytes(one: DataType, other: DataType) -> bool:
    """Whether both types mean the same bytes, whatever the names of their fields."""
    return bool(_bare(one) == _bare(other))


def _bare(kind: DataType) -> Any:
    kind = stored(kind)
    if isinstance(kind, Struct):
        return ("struct", *(_bare(field.type) for field in kind.fields))
    if isinstance(kind, Array):
        return ("array", _bare(kind.element))
    if isinstance(kind, Map):
        return ("map", _bare(kind.key), _bare(kind.value))
    return kind


def misfit(rows: RowBytes, schema: Struct) -> str | None:
    """Return why the rows cannot have this schema; None if nothing contradicts it."""
    import numpy as np

    count = len(schema.fields)
    bits = bitset_width(count)
    fixed = bits + WORD * count
    if not len(rows):
        return None
    if bool((rows.lengths < fixed).any()):
        shortest = int(rows.lengths.min())
        return f"a row has {shortest} bytes; its schema needs at least {fixed}"
    for word in range(bits // WORD):
        used = min(count - 64 * word, 64)
        nulls = gather(rows.data, rows.starts + WORD * word, "<u8")
        if used < 64 and bool((nulls >> np.uint64(used)).any()):
            return f"a row has more than {_fields(count)}"
    end = np.full(len(rows), fixed, np.int64)
    for at, field in enumerate(schema.fields):
        kind = stored(field.type)
        null = (gather(rows.data, rows.starts + at // 8, "u1") & (1 << (at % 8))) != 0
        slot = gather(rows.data, rows.starts + bits + WORD * at, "<u8")
        if not _is_variable(kind):
            if not _fits_slot(slot[~null], kind):
                return f"{field.name} has bytes that its type does not use"
            continue
        starts = (slot >> np.uint64(32)).astype(np.int64)
        sizes = (slot & np.uint64(0xFFFFFFFF)).astype(np.int64)
        if bool((starts != end)[~null].any()) or bool((end + sizes > rows.lengths)[~null].any()):
            return f"{field.name} does not point to its part of the row"
        inner = RowBytes(rows.data, (rows.starts + starts)[~null], sizes[~null])
        if isinstance(kind, Struct) and (why := misfit(inner, kind)):
            return f"in {field.name}, {why}"
        end = _after(end, sizes, null, kind)
    if bool((end != rows.lengths).any()):
        wrong = int(np.nonzero(end != rows.lengths)[0][0])
        return (
            f"{_fields(count)} take {int(end[wrong])} bytes, but a row has "
            f"{int(rows.lengths[wrong])}"
        )
    return None


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _is_variable(kind: DataType) -> bool:
    return isinstance(kind, Struct | Array | Map) or getattr(kind, "width", None) is None


def _fits_slot(slots: Any, kind: DataType) -> bool:
    """Whether narrow values are in slots whose other bytes are zero."""
    import numpy as np

    assert isinstance(kind, Atom | Decimal)
    width = kind.width or WORD
    if width < WORD and bool((slots >> np.uint64(8 * width)).any()):
        return False
    return getattr(kind, "name", "") != "boolean" or not bool((slots > 1).any())


def _after(end: Ints, sizes: Ints, null: Any, kind: DataType) -> Any:
    import numpy as np

    if isinstance(kind, Decimal) or getattr(kind, "name", "") == "interval":
        return end + _KEPT_ROOM
    return end + np.where(null, 0, (sizes + WORD - 1) // WORD * WORD)
