"""Reads the DStreams of a context that was built and not started from the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.engine.dstreams.intervals import state_interval
from floodmark.errors import WrongUse

STATE = "PythonStateDStream"
FILES = "FileInputDStream"


@dataclass(frozen=True)
class BuiltStream:
    kind: str
    jvm: Any
    must_save: bool


def streams_of(ssc: Any) -> tuple[BuiltStream, ...]:
    """Return every stream that an output needs, once."""
    outputs = list(ssc._jssc.ssc().graph().getOutputStreams())
    if not outputs:
        raise WrongUse(
            "no output uses the function's streams",
            "Spark runs a stream only for an output.",
            "End it with foreachRDD, pprint or saveAsTextFiles.",
        )
    return tuple(
        BuiltStream(str(one.getClass().getSimpleName()), one, bool(one.mustCheckpoint()))
        for one in walked(outputs)
    )


def walked(outputs: Iterable[Any]) -> list[Any]:
    """Return these streams and all streams behind them, once."""
    found: list[Any] = []
    waiting = list(outputs)[::-1]
    while waiting:
        one = waiting.pop()
        if any(one.equals(other) for other in found):
            continue
        found.append(one)
        parents = one.dependencies()
        waiting += [parents.apply(at) for at in range(parents.size())][::-1]
    return found


def set_intervals(ssc: Any, streams: Sequence[BuiltStream], told_ms: int | None) -> list[int]:
    """Set the interval of each stream with state, unless its own code has set one."""
    chosen = []
    for stream in streams:
        if not stream.must_save:
            continue
        has = stream.jvm.checkpointDuration()
        if has is None:
            slide = int(stream.jvm.slideDuration().milliseconds())
            interval = state_interval(slide, told_ms)
            stream.jvm.checkpoint(ssc._jvm.org.apache.spark.streaming.Duration(interval))
            chosen.append(interval)
        else:
            chosen.append(int(has.milliseconds()))
    return chosen


def private_field(owner: Any, name: str) -> Any:
    """Return a field of the object's own class; Scala adds the class's name to some fields."""
    return _opened(owner, owner.getClass().getDeclaredFields(), name)


def private_value(ssc: Any, owner: Any, name: str) -> Any:
    """Return the value of a `lazy val` of the object's own class; compute it if necessary."""
    method = _opened(owner, owner.getClass().getDeclaredMethods(), name)
    nothing = ssc.sparkContext._gateway.new_array(ssc._jvm.java.lang.Object, 0)
    return method.invoke(owner, nothing)


def _opened(owner: Any, members: Iterable[Any], name: str) -> Any:
    for member in members:
        if str(member.getName()).rpartition("$$")[2] == name:
            member.setAccessible(True)
            return member
    raise WrongUse(
        f"this Spark's {owner.getClass().getSimpleName()} has no {name}",
        "floodmark reads or sets it, so that a recovery loses nothing.",
        "Tell the project which Spark release you use.",
    )
