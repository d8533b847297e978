"""Holds a query that a script would have started, and what the script gets instead."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION, DEFAULT_CHECKPOINT_LOCATION
from floodmark.engine.spark.scala import jvm_field, scala_map


class NotStarted:
    """Replaces a StreamingQuery: it has ended, without any error."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.was_awaited = False
        """True after the script waited for it or stopped it: for the script, it has ended."""
        self.id = str(uuid.uuid4())
        self.runId = str(uuid.uuid4())
        self.isActive = False
        self.lastProgress = None
        self.recentProgress: list[Any] = []
        self.status = {
            "message": "Not started: floodmark judges the script",
            "isDataAvailable": False,
            "isTriggerActive": False,
        }

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        self.was_awaited = True
        return None if timeout is None else True

    def processAllAvailable(self) -> None:  # noqa: N802
        pass

    def stop(self) -> None:
        self.was_awaited = True

    def explain(self, extended: bool = False) -> None:
        pass

    def exception(self) -> None:
        return None


@dataclass(frozen=True)
class Caught:
    number: int
    """The number of the start, from 1."""
    writer: Any
    """The DataStreamWriter with everything that the script gave to start()."""
    name: str | None
    checkpoint: str | None
    """The checkpoint that the code names; None where Spark would use a temporary folder."""
    line: int | None
    query: NotStarted
    """The query that the script got."""
    settings: Any
    """The JVM's copy of the session's settings at the start."""
    ended: frozenset[int] = frozenset()
    """The starts before it whose queries have ended, as far as the script knows."""

    @property
    def words(self) -> str:
        named = f" {self.name}" if self.name else ""
        at = f", line {self.line}" if self.line is not None else ""
        place = self.checkpoint or "no checkpointLocation"
        return f"{self.number}{named}{at}: {place}"


def caught(
    number: int, writer: Any, line: int | None, ended: frozenset[int] = frozenset()
) -> Caught:
    name, place = location_of(writer)
    settings = _settings_of(writer).clone()
    return Caught(number, writer, name, place, line, NotStarted(name), settings, ended)


def settle(one: Caught) -> None:
    """Give the session of a caught query the settings that it had at the start.

    Spark runs a query with a copy of them. A script that starts several may set them in between.
    """
    conf = one.writer._spark.conf
    then, now = _pairs(one.settings), _pairs(_settings_of(one.writer))
    for key in now.keys() - then.keys():
        if conf.isModifiable(key):
            conf.unset(key)
    for key, value in then.items():
        if now.get(key) != value and conf.isModifiable(key):
            conf.set(key, value)


def _settings_of(writer: Any) -> Any:
    return writer._spark._jsparkSession.sessionState().conf()


def _pairs(settings: Any) -> dict[str, str]:
    found, pairs = {}, settings.getAllConfs().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1())] = str(pair._2())
    return found


def location_of(writer: Any) -> tuple[str | None, str | None]:
    """Return a writer's query name and checkpoint, if it has them."""
    options = scala_map(jvm_field(writer._jwrite, "extraOptions"))
    name = options.get("queryname")
    return name, options.get(CHECKPOINT_OPTION) or _default(writer, name)


_GIVEN = ("format", "outputMode", "partitionBy", "queryName")


def given_to_start(writer: Any, given: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Apply the arguments of start() and toTable(), except the place, to the writer."""
    named = dict(zip(_GIVEN, given, strict=False))
    named |= {name: options.pop(name) for name in _GIVEN if name in options}
    writer.options(**options)
    for name in _GIVEN:
        if named.get(name) is not None:
            getattr(writer, name)(named[name])


def _default(writer: Any, name: str | None) -> str | None:
    """Return the default checkpoint: a folder with the query's name in the session's location."""
    place = writer._spark.conf.get(DEFAULT_CHECKPOINT_LOCATION, None)
    return f"{str(place).rstrip('/')}/{name}" if place and name else None
