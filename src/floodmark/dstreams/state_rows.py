"""Reads one part of a saved RDD: the keys and values of updateStateByKey and mapWithState.

Python's parts hold pickled batches; Scala's and Java's hold their objects; those of mapWithState
hold one map each. All are streams of Java objects, packed or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from floodmark.dstreams.java_objects import MAGIC, JavaArray, JavaObject, read_objects
from floodmark.dstreams.plain_pickle import plain_loads
from floodmark.dstreams.plain_values import Budget, plain_value, tuple_items
from floodmark.errors import CannotRead, MalformedFile
from floodmark.state.files.compression import decompress

_RECORD = "org.apache.spark.streaming.rdd.MapWithStateRDDRecord"
_MAP = "org.apache.spark.streaming.util.OpenHashMapBasedStateMap"
Pair = tuple[Any, Any]


def state_pairs(data: bytes, loads: Callable[[bytes], Any] = plain_loads) -> Iterator[Pair]:
    """Yield the (key, value) pairs; `loads` reads a pickled batch."""
    if not data:
        raise MalformedFile("the part is empty", "The file's write was interrupted.")
    content = data if data.startswith(MAGIC) else _unpacked(data)
    if not content:
        return  # a partition without a key
    for record in read_objects(content):
        if isinstance(record, JavaArray) and isinstance(record.items, bytes):
            yield from _pickled(loads(record.items))
        elif isinstance(record, JavaObject) and record.name == _RECORD:
            yield from _of_map(record.get("stateMap"))
        elif isinstance(record, JavaObject) and record.name.startswith("scala.Tuple2"):
            key, value = tuple_items(record)
            yield key, value
        else:
            raise CannotRead(
                f"a record of the part is {getattr(record, 'name', type(record).__name__)}",
                "State is pairs of keys and values; this RDD holds other data of a stream.",
                "`floodmark inspect CP` shows which streams have state.",
            )


def _unpacked(data: bytes) -> bytes:
    content = decompress(data)
    if content and not content.startswith(MAGIC):
        raise CannotRead(
            "the records are not Java objects",
            "A serializer other than Java's and Kryo's wrote them, or the part is damaged.",
            "Read it with the application: sc.checkpointFile(folder).",
        )
    return content


def _pickled(batch: Any) -> Iterator[Pair]:
    for record in batch if isinstance(batch, list) else [batch]:
        if not isinstance(record, tuple) or len(record) != 2:
            raise CannotRead(
                "a record of the part is not a pair of a key and a value",
                "The RDD holds other data of a stream, not state.",
                "`floodmark inspect CP` shows which streams have state.",
            )
        yield record


def _of_map(found: Any) -> Iterator[Pair]:
    """Decode a map as OpenHashMapBasedStateMap reads itself: the changes, then the older map."""
    if not isinstance(found, JavaObject) or found.name != _MAP:
        return  # EmptyStateMap
    written = _Written(found.written)
    live: list[Pair] = []
    changed = set()
    for _ in range(written.number(4)):
        key, info = written.object(), written.object()
        changed.add(_hashed(key))
        if isinstance(info, JavaObject) and not info.get("deleted"):
            live.append((key, info.get("data")))
    written.number(4)
    while True:
        key = written.object()
        if isinstance(key, JavaObject) and key.name.endswith("$LimitMarker"):
            break
        value = written.object()
        written.number(8)
        if _hashed(key) not in changed:
            yield key, value
    yield from live


def _hashed(key: Any) -> str:
    return repr(plain_value(key, Budget()))


class _Written:
    """Reads the extra data of a class in the class's own order: objects, and numbers in blocks."""

    def __init__(self, found: list[Any]) -> None:
        self._found = iter(found)
        self._block = b""

    def number(self, size: int) -> int:
        while len(self._block) < size:
            more = next(self._found, None)
            if not isinstance(more, bytes):
                raise MalformedFile("the state map is damaged: a number is missing")
            self._block += more
        number, self._block = self._block[:size], self._block[size:]
        return int.from_bytes(number, "big", signed=True)

    def object(self) -> Any:
        found = next(self._found, _END)
        if found is _END or isinstance(found, bytes):
            raise MalformedFile("the state map is damaged: an object is missing")
        return found


_END = object()
