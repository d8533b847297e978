"""Converts rows of state to another shape: each column comes from an old one, or is filled.

A `Recipe` says where every column of a store's new key and value comes from. It is plain data, so
that a plan can hold it. Arrow carries it out, one batch at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.errors import NotCarried
from floodmark.state.rows.types import DataType, Field, Struct, arrow_type, ddl, distinct, stored
from floodmark.state.rows.values import coerce, plain

if TYPE_CHECKING:
    import pyarrow as pa

KEY, VALUE = "key", "value"
_SHOWN = 5


@dataclass(frozen=True)
class Column:
    """The origin of one column of the new rows."""

    name: str
    source: tuple[str, ...] = ()
    """The path to the old column: `("value", "sum")`; empty if it is filled."""
    fill: Any = None
    """The value for every row if there is no source, as JSON data."""
    inner: tuple[Column, ...] = ()
    """The fields of a struct that is built field by field."""

    @property
    def is_filled(self) -> bool:
        return not self.source and not self.inner


@dataclass(frozen=True)
class Recipe:
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    merge: Mapping[str, str] | None = None
    """Column → how to merge the values of keys that became the same; None if keys stay apart."""

    @property
    def keeps_keys(self) -> bool:
        """Whether keys keep their bytes, and therefore their partitions."""
        return self.merge is None and all(
            column.source == (KEY, column.name) and not column.inner for column in self.key
        )


@dataclass(frozen=True)
class Reshaping:
    """A recipe with the final schemas of its columns."""

    recipe: Recipe
    key: Struct
    value: Struct
    where: str = "the state"

    def rows(self, keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
        old = {KEY: keys, VALUE: values}
        count = len(keys)
        return (
            _struct(self.recipe.key, self.key, old, count, self.where),
            _struct(self.recipe.value, self.value, old, count, self.where),
        )


def _struct(
    columns: Sequence[Column], schema: Struct, old: Mapping[str, Any], count: int, where: str
) -> pa.Array:
    import pyarrow as pa

    kinds = list(arrow_type(schema))
    parts = [
        _made(column, kind, old, count, where)
        for column, kind in zip(columns, distinct(schema).fields, strict=True)
    ]
    if not parts:
        return pa.array([{}] * count, pa.struct([]))
    return pa.StructArray.from_arrays(parts, fields=kinds)


def _made(column: Column, kind: Field, old: Mapping[str, Any], count: int, where: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    goal = arrow_type(kind.type)
    if column.inner:
        inner = stored(kind.type)
        assert isinstance(inner, Struct)
        made = _struct(column.inner, inner, old, count, where)
        if column.source:
            whole = _taken(column.source, old)
            made = pa.StructArray.from_arrays(
                made.flatten(), fields=list(goal), mask=pc.is_null(whole)
            )
    elif column.source:
        made = _cast(_taken(column.source, old), kind.type, column, where)
    else:
        made = _filled(column, kind.type, goal, count)
    if not kind.nullable and made.null_count:
        raise _null_found(column, made, old, where)
    return made


def _taken(source: tuple[str, ...], old: Mapping[str, Any]) -> pa.Array:
    import pyarrow.compute as pc

    array = old[source[0]]
    for name in source[1:]:
        # Unlike field(), struct_field makes the fields of a null struct null.
        array = pc.struct_field(array, [array.type.get_field_index(name)])
    return array


def _cast(array: pa.Array, kind: DataType, column: Column, where: str) -> pa.Array:
    import pyarrow as pa

    goal = arrow_type(kind)
    if array.type == goal:
        return array
    try:
        return array.cast(goal)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise NotCarried(
            f"{where}: a value of {'.'.join(column.source)} does not fit {ddl(kind)}",
            str(error),
            "Keep the wider type, or convert the values with --with MIGRATION.py.",
        ) from None


def _filled(column: Column, kind: DataType, goal: pa.DataType, count: int) -> pa.Array:
    import pyarrow as pa

    if column.fill is None:
        return pa.nulls(count, goal)
    value = pa.array([coerce(column.fill, kind)], goal)
    return value.take(pa.array([0] * count, pa.int32())) if count != 1 else value


def _null_found(column: Column, made: pa.Array, old: Mapping[str, Any], where: str) -> NotCarried:
    import pyarrow.compute as pc

    rows = pc.indices_nonzero(pc.is_null(made))[:_SHOWN].to_pylist()
    shown = [str(plain(old[KEY][row])) for row in rows]
    return NotCarried(
        f"{where}: {column.name} must not be null, but {made.null_count} rows have no value",
        "The first keys are:\n" + "\n".join(shown),
        f"Give one value for all rows with --default {column.name}=VALUE, or one for each row "
        "with --with MIGRATION.py.",
    )
