"""Reads a `checkpoint-<time>` file: the application's settings, its streams and their batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.dstreams.folder import FILE_STREAM, DStream, Graph, OffsetRange
from floodmark.dstreams.java_objects import MAGIC, JavaArray, JavaObject, read_object
from floodmark.dstreams.scala import items, millis, option, pairs, text, unboxed
from floodmark.errors import MalformedFile
from floodmark.limits import current
from floodmark.redaction import recorded_conf
from floodmark.state.files.compression import codec_of, decompress

_CHECKPOINT = "org.apache.spark.streaming.Checkpoint"
_STREAM = "org.apache.spark.streaming.dstream.DStream"
_PYTHON = "org.apache.spark.streaming.api.python."


def read_graph(data: bytes) -> Graph:
    """Return as data what Spark's `Checkpoint.deserialize` would return."""
    if not data:
        raise MalformedFile("the file is empty", "The file's write was interrupted.")
    codec = None if data.startswith(MAGIC) else codec_of(data)
    content = data if codec is None else decompress(data, current().of("graph"))
    found, objects = read_object(content)
    if not isinstance(found, JavaObject) or found.name != _CHECKPOINT:
        named = getattr(found, "name", type(found).__name__)
        raise MalformedFile(
            f"the file holds an object of {named}",
            "Spark writes an org.apache.spark.streaming.Checkpoint.",
        )
    return _graph(found, objects, codec)


def _graph(found: JavaObject, objects: list[JavaObject], codec: str | None) -> Graph:
    graph = found.get("graph")
    time_ms = millis(found.get("checkpointTime"))
    if not isinstance(graph, JavaObject) or time_ms is None:
        # Spark itself refuses a Checkpoint without them.
        raise MalformedFile("the Checkpoint in the file has no graph or no time")
    conf = {str(key): str(value) for key, value in pairs(found.get("sparkConfPairs"))}
    streams = [one for one in objects if one.extends(_STREAM)]
    places = {id(one): at for at, one in enumerate(streams)}
    return Graph(
        time_ms,
        millis(graph.get("batchDuration")),
        millis(found.get("checkpointDuration")),
        tuple(sorted(_times(items(found.get("pendingTimes"))))),
        millis(graph.get("zeroTime")),
        text(found.get("master")),
        text(found.get("framework")),
        text(found.get("checkpointDir")),
        tuple(one for one in items(found.get("jars")) if isinstance(one, str)),
        recorded_conf(conf),
        tuple(_stream(one, places) for one in streams),
        any(one.name.startswith(_PYTHON) for one in objects),
        codec,
    )


def _times(values: list[Any]) -> list[int]:
    return [time for value in values if (time := millis(value)) is not None]


def _stream(found: JavaObject, places: Mapping[int, int]) -> DStream:
    data = found.get("checkpointData")
    held = data.get("data") if isinstance(data, JavaObject) else None
    by_time = {time: value for key, value in pairs(held) if (time := millis(key)) is not None}
    kind = found.name.rpartition(".")[2]
    is_files = kind == FILE_STREAM
    initial = found.get("initialModTimeIgnoreThreshold")
    parents = _parents(found, places)
    return DStream(
        kind,
        scope_name(option(found.get("baseScope"))),
        parents[0] if parents else None,
        millis(found.get("checkpointDuration", _STREAM)),
        {at: value for at, value in sorted(by_time.items()) if isinstance(value, str)},
        {at: _strings(value) for at, value in sorted(by_time.items()) if _holds_strings(value)},
        {at: ranges for at, value in sorted(by_time.items()) if (ranges := _ranges(value))},
        text(found.get("directory")) if is_files else None,
        millis(found.get("durationToRemember")) if is_files else None,
        initial if is_files and type(initial) is int else None,
        parents,
        is_files and _is_of_application(found.get("filter")),
    )


def _is_of_application(filter_: Any) -> bool:
    """Whether a filter is the application's; Spark's own is a lambda of the file stream's class."""
    own = "org/apache/spark/streaming/dstream/FileInputDStream$"
    return isinstance(filter_, JavaObject) and filter_.get("implClass") != own


def scope_name(scope: Any) -> str | None:
    """Return the operation that made a stream, from Spark's JSON about it."""
    try:
        said = json.loads(scope) if isinstance(scope, str) else None
    except (ValueError, RecursionError):
        return None
    name = said.get("name") if isinstance(said, dict) else None
    return name if isinstance(name, str) else None


def _parents(found: JavaObject, places: Mapping[int, int]) -> tuple[int, ...]:
    """Return the streams that a stream reads, `parent` first: every stream in its fields."""
    of_fields = [value for held in found.fields.values() for value in held.values()]
    values = [found.get("parent"), *items(found.get("parents")), *of_fields]
    return tuple(dict.fromkeys(places[id(one)] for one in values if id(one) in places))


def _holds_strings(value: Any) -> bool:
    return isinstance(value, JavaArray) and value.java_class.name == "[Ljava.lang.String;"


def _strings(value: JavaArray) -> tuple[str, ...]:
    return tuple(one for one in value.items if isinstance(one, str))


def _ranges(value: Any) -> tuple[OffsetRange, ...]:
    """Return the ranges of a direct Kafka stream: (topic, partition, from, until) of each."""
    found = []
    for one in items(value) if isinstance(value, JavaArray) else ():
        if isinstance(one, JavaObject) and one.name.startswith("scala.Tuple4"):
            topic, *numbers = (unboxed(one.get(f"_{at}")) for at in range(1, 5))
            if isinstance(topic, str) and all(type(number) is int for number in numbers):
                found.append(OffsetRange(topic, *numbers))
    return tuple(found)
