"""Explains an operator's stores, so that a person sees names and not bytes.

Every operator keeps pairs of key and value, and most show them directly. A join spreads one side
over two stores. transformWithState keeps a variable in a column family, and its lists, maps and
timers in special shapes. Column names are those of Spark's `statestore` reader; what it returns as
several columns is in `value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import (
    JOIN_COUNTS,
    JOIN_SIDES,
    JOIN_STORES,
    JOIN_TIMED_VALUES,
    JOIN_VALUES,
)
from floodmark.checkpoint.text import parse_json_object
from floodmark.errors import MalformedFile
from floodmark.state.rows.types import BOOLEAN, INTEGER, LONG, Atom, Field, Struct, render_json
from floodmark.state.shapes.schema import DEFAULT_FAMILY, ColumnFamily, KeyEncoding, StateSchema

if TYPE_CHECKING:
    import pyarrow as pa

    from floodmark.state.rows.rowbytes import RowBytes

SEVERAL_VALUES = (JOIN_TIMED_VALUES, "tsWithKey")
"""The families of join format 4 whose keys have several values each."""
TIMERS = "timers"
_TIMER_FAMILIES = ("$procTimers_keyToTimestamp", "$eventTimers_keyToTimestamp")


class Shape(str, Enum):
    PAIRS = "pairs"
    VALUES = "values"
    LIST = "list"
    MAP = "map"
    TIMER = "timer"
    JOIN = "join"


@dataclass(frozen=True)
class Reading:
    """One readable part of an operator's state: a store, a join side or a variable."""

    name: str
    folder: str
    """The store whose files contain it."""
    family: str | None
    """The column family in that store, if it has several."""
    shape: Shape
    schema: ColumnFamily | None
    counts: Reading | None = None
    """The second store of a join side, with the number of values of each key."""

    @property
    def key(self) -> Struct | None:
        if self.schema is None:
            return None
        if self.shape is Shape.JOIN:
            assert self.counts is not None
            return self.counts.schema.key if self.counts.schema else None
        if self.shape in (Shape.MAP, Shape.TIMER):
            return _inner(self.schema.key, 0)
        return self.schema.key

    @property
    def value(self) -> Struct | None:
        schema = self.schema
        if schema is None:
            return None
        if self.shape is Shape.LIST:
            return Struct((Field("list_element", schema.value),))
        if self.shape is Shape.MAP:
            user_key = _inner(schema.key, 1)
            return Struct((Field("user_map_key", user_key), Field("user_map_value", schema.value)))
        if self.shape is Shape.TIMER:
            return Struct((Field("expiration_timestamp_ms", LONG),))
        if self.shape is Shape.JOIN and _has_matched(schema.value):
            return Struct(schema.value.fields[:-1])
        return schema.value

    def show(self, keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return stored keys and values as a person sees them."""
        import pyarrow as pa

        if self.shape is Shape.LIST:
            return keys, pa.StructArray.from_arrays([values], ["list_element"])
        if self.shape is Shape.MAP:
            names = ["user_map_key", "user_map_value"]
            return keys.field(0), pa.StructArray.from_arrays([keys.field(1), values], names)
        if self.shape is Shape.TIMER:
            names = ["expiration_timestamp_ms"]
            return keys.field(0), pa.StructArray.from_arrays([keys.field(1)], names)
        if self.shape is Shape.JOIN:
            key, value = self.key, self.value
            if key is None or value is None:
                missing = self.counts.name if self.counts and key is None else self.folder
                raise MalformedFile(
                    f"the schema of {missing} is missing, and side {self.name} of the join needs "
                    "it",
                    "The schema file is _metadata/schema in the store's first partition.",
                    "Restore it from a backup, or look at one store: "
                    f"--store {self.name}-{JOIN_VALUES}",
                )
            return _first_fields(keys, len(key.fields)), _first_fields(values, len(value.fields))
        return keys, values


def _inner(schema: Struct, at: int) -> Struct:
    kind = schema.fields[at].type if len(schema.fields) > at else None
    if not isinstance(kind, Struct):
        raise MalformedFile("a state variable's key is not made of a key and its own part")
    return kind


def _has_matched(value: Struct) -> bool:
    return (
        bool(value.fields)
        and value.fields[-1].name == "matched"
        and value.fields[-1].type == BOOLEAN
    )


def _first_fields(array: pa.Array, count: int) -> pa.Array:
    import pyarrow as pa

    parts = array.flatten()[:count]
    return pa.StructArray.from_arrays(parts, fields=[array.type[at] for at in range(count)])


def readings(
    stores: tuple[str, ...],
    schemas: Mapping[str, StateSchema],
    properties_json: str = "",
    prefix_columns: int = 0,
) -> tuple[Reading, ...]:
    """Return everything that can be read of an operator, the most useful first."""
    default = schemas.get(DEFAULT_FAMILY)
    if set(JOIN_STORES) <= set(stores):
        found = {name: _pairs(name, name, schemas.get(name)) for name in JOIN_STORES}
        return _join(found)
    if default is not None and all(default.family(name) for name in JOIN_STORES):
        found = {name: _family(default, name, Shape.PAIRS) for name in JOIN_STORES}
        return _join(found)
    if default is not None and default.version == 3:
        return _variables(default, properties_json)
    return tuple(_pairs(store, store, schemas.get(store), prefix_columns) for store in stores)


def _join(found: Mapping[str, Reading]) -> tuple[Reading, ...]:
    sides = tuple(
        Reading(
            side,
            values.folder,
            values.family,
            Shape.JOIN,
            values.schema,
            found[f"{side}-{JOIN_COUNTS}"],
        )
        for side in JOIN_SIDES
        if (values := found[f"{side}-{JOIN_VALUES}"]).schema is not None
    )
    return (*sides, *found.values())


def _pairs(name: str, folder: str, schema: StateSchema | None, prefix_columns: int = 0) -> Reading:
    family = schema.families[0] if schema else None
    if family is not None:
        family = _with_whole_timeout(family)
        prefix = prefix_columns or _session_prefix(family.key)
        if prefix:
            family = _with_prefix(family, prefix)
    return Reading(name, folder, None, Shape.PAIRS, family)


def _session_prefix(key: Struct) -> int:
    """Return a session window's prefix columns: before 4.0 only the key shows them."""
    last = key.fields[-1] if key.fields else None
    is_session = (
        last is not None
        and last.name == "sessionStartTime"
        and isinstance(last.type, Atom)
        and last.type.name.startswith("timestamp")
    )
    return len(key.fields) - 1 if is_session else 0


def _with_whole_timeout(family: ColumnFamily) -> ColumnFamily:
    """Correct the timeout of flatMapGroupsWithState's format 1 to a long.

    The schema calls it an int, but Spark writes a long. Spark's own reader refuses such rows, or
    shows the lower half.
    """
    fields = family.value.fields
    if not fields or fields[-1].name != "timeoutTimestamp":
        return family
    if fields[-1].type != INTEGER or fields[-1].nullable:
        return family
    value = Struct((*fields[:-1], replace(fields[-1], type=LONG)))
    return replace(family, value_json=render_json(value))


def _with_prefix(family: ColumnFamily, columns: int) -> ColumnFamily:
    from floodmark.state.shapes.schema import render_encoding

    encoding = KeyEncoding("PrefixKeyScanStateEncoderSpec", columns)
    return replace(family, encoding_json=render_encoding(encoding))


def _family(schema: StateSchema, name: str, shape: Shape, shown: str | None = None) -> Reading:
    return Reading(shown or name, DEFAULT_FAMILY, name, shape, schema.family(name))


def _variables(schema: StateSchema, properties_json: str) -> tuple[Reading, ...]:
    shapes = _shapes(properties_json)
    found = []
    for family in schema.families:
        name = family.name
        if name in _TIMER_FAMILIES:
            found.append(_family(schema, name, Shape.TIMER, TIMERS))
        elif name in shapes:
            found.append(_family(schema, name, shapes[name]))
        else:
            shape = _guessed(schema, family)
            found.append(_family(schema, name, shape))
    return tuple(sorted(found, key=lambda one: (one.name.startswith("$"), one.name == TIMERS)))


def _guessed(schema: StateSchema, family: ColumnFamily) -> Shape:
    """Guess the shape of a variable that the metadata lacks, by the families beside it."""
    if family.user_key is not None:
        return Shape.MAP
    if family.name.endswith(SEVERAL_VALUES):
        return Shape.VALUES
    if schema.family(f"$rowCounter_{family.name}"):
        return Shape.LIST
    return Shape.PAIRS


def _shapes(properties_json: str) -> dict[str, Shape]:
    if not properties_json:
        return {}
    fields = parse_json_object(properties_json, "the operator's properties")
    variables = fields.get("stateVariables")
    if not isinstance(variables, list):
        return {}
    kinds = {"ListState": Shape.LIST, "MapState": Shape.MAP, "ValueState": Shape.PAIRS}
    return {
        str(one.get("stateName")): kinds[one["stateVariableType"]]
        for one in variables
        if isinstance(one, dict) and one.get("stateVariableType") in kinds
    }


class JoinCounts:
    """Counts the values of each key of a join side; Spark shows no values beyond them."""

    def __init__(self) -> None:
        self._hashes: list[Any] = []
        self._counts: list[Any] = []
        self._sorted: tuple[Any, Any, Any] | None = None

    def add(self, keys: RowBytes, counts: Any) -> None:
        from floodmark.state.keys.keyset import hash_rows

        self._hashes.append(hash_rows(keys))
        self._counts.append(counts)

    def keeps(self, keys: pa.Array, schema: Struct, index: Any) -> Any:
        import numpy as np

        if self._sorted is None:
            hashes = np.concatenate(self._hashes or [np.zeros((2, 0), np.uint64)], axis=1)
            counts = np.concatenate(self._counts or [np.zeros(0, np.int64)])
            order = np.argsort(hashes[0], kind="stable")
            self._sorted = hashes[0][order], hashes[1][order], counts[order]
        first, second, counts = self._sorted
        if not len(first):
            return np.zeros(len(keys), bool)
        from floodmark.state.keys.keyset import hash_rows
        from floodmark.state.rows.unsaferow_write import encode_rows

        wanted = hash_rows(encode_rows(keys, schema))
        at = np.minimum(np.searchsorted(first, wanted[0]), len(first) - 1)
        known = (first[at] == wanted[0]) & (second[at] == wanted[1])
        return known & (index < counts[at])
