"""Reads an application that Spark has deserialised, into the data that is read without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floodmark.checkpoint.dstreams.folder import FILE_STREAM, DStream, Graph, OffsetRange
from floodmark.dstreams.graph import scope_name
from floodmark.engine.dstreams.jvm_graph import private_field, walked
from floodmark.redaction import recorded_conf

_FILES = "org.apache.spark.streaming.dstream.FileInputDStream$"
_PYTHON = "org.apache.spark.streaming.api.python."


def graph_of(spark: Any, checkpoint: Any, codec: str | None) -> Graph:
    graph = checkpoint.graph()
    streams = walked(graph.getOutputStreams())
    jars = _java(spark, checkpoint.jars())
    conf = {str(pair._1()): str(pair._2()) for pair in checkpoint.sparkConfPairs()}
    return Graph(
        int(checkpoint.checkpointTime().milliseconds()),
        _millis(graph.batchDuration()),
        _millis(checkpoint.checkpointDuration()),
        tuple(sorted(int(one.milliseconds()) for one in checkpoint.pendingTimes())),
        _millis(graph.zeroTime()),
        checkpoint.master(),
        checkpoint.framework(),
        checkpoint.checkpointDir(),
        tuple(str(jar) for jar in jars),
        recorded_conf(conf),
        tuple(_stream(spark, one, streams) for one in streams),
        any(str(one.getClass().getName()).startswith(_PYTHON) for one in streams),
        codec,
    )


def _millis(value: Any) -> int | None:
    return None if value is None else int(value.milliseconds())


def _java(spark: Any, value: Any) -> Any:
    """Return a Scala collection in a form that py4j can iterate."""
    return spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(value)


def _stream(spark: Any, found: Any, streams: Sequence[Any]) -> DStream:
    kind = str(found.getClass().getSimpleName())
    held = dict(_java(spark, found.checkpointData().data()))
    by_time = {int(time.milliseconds()): held[time] for time in held}
    ordered = sorted(by_time.items())
    is_files = kind == FILE_STREAM
    scope = found.baseScope()
    places = (_place(one, streams) for one in _java(spark, found.dependencies()))
    parents = tuple(at for at in places if at is not None)
    return DStream(
        kind,
        scope_name(scope.get()) if scope.isDefined() else None,
        parents[0] if parents else None,
        _millis(found.checkpointDuration()),
        {at: value for at, value in ordered if isinstance(value, str)},
        {at: tuple(value) for at, value in ordered if _holds_strings(value)},
        {at: ranges for at, value in ordered if (ranges := _ranges(value))},
        str(private_field(found, "directory").get(found)) if is_files else None,
        _millis(private_field(found, "durationToRemember").get(found)) if is_files else None,
        int(private_field(found, "initialModTimeIgnoreThreshold").get(found)) if is_files else None,
        parents,
        is_files and not _is_sparks_own(private_field(found, "filter").get(found)),
    )


def _is_sparks_own(filter_: Any) -> bool:
    return str(filter_.getClass().getName()).startswith(_FILES)


def _place(parent: Any, streams: Sequence[Any]) -> int | None:
    return next((at for at, one in enumerate(streams) if one.equals(parent)), None)


def _is_array(value: Any) -> bool:
    return not isinstance(value, str) and hasattr(value, "__len__")


def _holds_strings(value: Any) -> bool:
    return _is_array(value) and all(isinstance(one, str) for one in value)


def _ranges(value: Any) -> tuple[OffsetRange, ...]:
    """Return the ranges of a direct Kafka stream: (topic, partition, from, until) of each."""
    if not _is_array(value) or _holds_strings(value):
        return ()
    return tuple(
        OffsetRange(str(one._1()), int(one._2()), int(one._3()), int(one._4())) for one in value
    )
