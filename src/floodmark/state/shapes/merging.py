"""Merges rows whose keys became the same, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from floodmark.errors import WrongUse
from floodmark.state.rows.rowbytes import binary_array
from floodmark.state.rows.types import Struct, arrow_type, distinct
from floodmark.state.rows.unsaferow_write import encode_rows

if TYPE_CHECKING:
    import pyarrow as pa

ANY = "any"


def merged(
    keys: pa.Array, values: pa.Array, key: Struct, value: Struct, merge: Mapping[str, str]
) -> tuple[pa.Array, pa.Array]:
    """Return one row for each key, in the order in which the keys first occur."""
    import pyarrow as pa

    columns = {f"c{at}": part for at, part in enumerate(values.flatten())}
    names = distinct(value).names
    wanted = [
        (f"c{at}", merge[name]) for at, name in enumerate(names) if _is_computed(name, value, merge)
    ]
    table = pa.table(
        {
            **{name: columns[name] for name, _ in wanted},
            # Keys are the same if their bytes are the same, whatever their types.
            "key": binary_array(encode_rows(keys, key)),
            "row": pa.array(range(len(keys)), pa.int64()),
        }
    )
    try:
        found = table.group_by("key", use_threads=False).aggregate([("row", "min"), *wanted])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WrongUse(
            f"the columns cannot be merged in this way: {error}",
            do="Choose another way, or give a function: merge(key, values) in --with MIGRATION.py.",
        ) from None
    rows = found.column("row_min").combine_chunks()
    kinds = list(arrow_type(value))
    parts = []
    for at, name in enumerate(names):
        if _is_computed(name, value, merge):
            part = found.column(f"c{at}_{merge[name]}").combine_chunks().cast(kinds[at].type)
        else:
            part = columns[f"c{at}"].take(rows)
        parts.append(part)
    if not parts:
        return keys.take(rows), values.take(rows)
    return keys.take(rows), pa.StructArray.from_arrays(parts, fields=kinds)


def _is_computed(name: str, value: Struct, merge: Mapping[str, str]) -> bool:
    import pyarrow as pa

    if merge[name] == ANY:
        return False
    kind = arrow_type(distinct(value).field(name).type)
    return not (pa.types.is_null(kind) or pa.types.is_nested(kind))
