"""Finds the columns of a stored key that decide its partition: the grouping columns.

A store's key often has more columns: a join's counter, a session's start, a timer's time, a map's
own key. Spark hashes only the grouping columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import JOIN_COUNTS, JOIN_VALUES
from floodmark.errors import MalformedFile, Refused
from floodmark.state.keys.murmur import hashes_of
from floodmark.state.rows.types import Array, DataType, Field, Map, Struct, atom, stored
from floodmark.state.shapes.operators import SEVERAL_VALUES, Reading, Shape

if TYPE_CHECKING:
    import pyarrow as pa

_TIMERS = ("$procTimers_", "$eventTimers_")
_TTL = "$ttl_"
INTERVAL = atom("interval")
_MAP_KEY = ("key", "userKey")
_SESSION_START = "sessionStartTime"


@dataclass(frozen=True)
class Grouping:
    """A path into a stored key: the structs to enter, then the first columns there."""

    path: tuple[int, ...]
    fields: tuple[Field, ...]

    @property
    def is_keyless(self) -> bool:
        """Whether all rows are in one partition, whatever the number of partitions."""
        return not any(_counts(field.type) for field in self.fields)

    @property
    def is_settled(self) -> bool:
        """Whether all Sparks hash these columns alike: up to 4.2 an interval's days were left
        out.
        """
        return not any(_has_interval(field.type) for field in self.fields)

    def hashes(self, keys: pa.Array) -> Any:
        """Return Spark's hash of each key; its partition is the hash modulo their number."""
        if not self.is_settled:
            raise Refused(
                "the state's keys have calendar intervals, whose partition is uncertain",
                "Spark up to 4.2 and Spark 4.3 hash an interval with days in different ways.",
                "Keep the number of partitions, or group by a day-time interval instead.",
            )
        types: list[DataType] = [field.type for field in self.fields]
        found = keys
        for at in self.path:
            found = found.flatten()[at]
        return hashes_of(found.flatten()[: len(types)], types)


def _has_interval(kind: DataType) -> bool:
    kind = stored(kind)
    if isinstance(kind, Struct):
        return any(_has_interval(field.type) for field in kind.fields)
    if isinstance(kind, Array):
        return _has_interval(kind.element)
    if isinstance(kind, Map):
        return _has_interval(kind.key) or _has_interval(kind.value)
    return kind == INTERVAL


def _counts(kind: DataType) -> bool:
    return getattr(kind, "name", "") != "void"


def grouping_of(reading: Reading) -> Grouping:
    assert reading.schema is not None
    key = reading.schema.key
    name = reading.family or reading.folder
    if name.endswith((JOIN_VALUES, *SEVERAL_VALUES)):
        return Grouping((), key.fields[:-1])
    if name.endswith(JOIN_COUNTS):
        return Grouping((), key.fields)
    if reading.family is None:
        return Grouping((), key.fields[: _plain_columns(reading, key)])
    if reading.shape is Shape.MAP:
        return _inside(key, 0, ())
    if name.startswith((*_TIMERS, _TTL)):
        return _of_index(key)
    return Grouping((), key.fields)


def _plain_columns(reading: Reading, key: Struct) -> int:
    """Return the number of grouping columns; session windows scan by their keys.

    A session window without keys has only the session's start, so it has none.
    """
    assert reading.schema is not None
    if len(key.fields) == 1 and key.fields[0].name == _SESSION_START:
        return 0
    return reading.schema.encoding.prefix_columns or len(key.fields)


def _of_index(key: Struct) -> Grouping:
    """Find the grouping in a time and a key in either order; a map's key contains it."""
    for at, field in enumerate(key.fields):
        if isinstance(field.type, Struct):
            inner = field.type
            if tuple(part.name for part in inner.fields) == _MAP_KEY:
                return _inside(inner, 0, (at,))
            return Grouping((at,), inner.fields)
    raise MalformedFile("an index of the state has no key inside")


def _inside(key: Struct, at: int, path: tuple[int, ...]) -> Grouping:
    kind = key.fields[at].type
    if not isinstance(kind, Struct):
        raise MalformedFile("a state variable's key is not made of a key and its own part")
    return Grouping((*path, at), kind.fields)
