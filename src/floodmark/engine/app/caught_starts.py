"""Catches calls that would start a stream, and keeps their queries; nothing starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from floodmark.checkpoint.conf_keys import CHECKPOINT_LOCATION, REMOTE
from floodmark.engine.app.caught_query import Caught, NotStarted, caught, given_to_start
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch
from floodmark.engine.app.time_limit import ScriptEnded
from floodmark.engine.code.query import TABLE_GIVEN
from floodmark.errors import WrongUse

_RESTARTS = 3
_CONNECT = WrongUse(
    "the script uses Spark Connect",
    "Its sessions give no access to a query's plan, so floodmark cannot judge it.",
    "Run the script with a session of the classic API: without SPARK_REMOTE and .remote(…).",
)


class Starts:
    """Collects the queries that the script would have started, in their order."""

    def __init__(self, watch: Watch, on_start: Callable[[], None] = lambda: None) -> None:
        self._watch = watch
        self._lock = threading.Lock()
        self._on_start = on_start
        self._restarts = 0
        self.found: list[Caught] = []

    def add(self, writer: Any) -> NotStarted:
        with self._lock:
            ended = frozenset(old.number for old in self.found if old.query.was_awaited)
            one = caught(len(self.found) + 1, writer, self._watch.line(), ended)
            before = self._ended_before(one)
            if before is None:
                self.found.append(one)
        self._on_start()
        if before is None:
            return one.query
        # This is a loop that restarts its query whenever it has ended.
        self._restarts += 1
        if self._restarts > _RESTARTS:
            raise ScriptEnded
        return before.query

    def _ended_before(self, one: Caught) -> Caught | None:
        """Return the same start, if its query has ended as far as the script knows."""
        same = (
            old for old in self.found if (old.line, old.checkpoint) == (one.line, one.checkpoint)
        )
        return next((old for old in same if old.query.was_awaited), None)

    def all_awaited(self) -> None:
        for one in self.found:
            one.query.was_awaited = True


def catch_starts(patches: Patches, watch: Watch, starts: Starts) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQueryManager

    def start(original: Any) -> Any:
        def caught_start(self: Any, path: Any = None, *given: Any, **options: Any) -> Any:
            if not watch.applies():
                return original(self, path, *given, **options)
            given_to_start(self, given, options)
            return starts.add(self if path is None else self.option("path", path))

        return caught_start

    def to_table(original: Any) -> Any:
        def caught_start(self: Any, tableName: str, *given: Any, **options: Any) -> Any:  # noqa: N803
            if not watch.applies():
                return original(self, tableName, *given, **options)
            given_to_start(self, given, options)
            setattr(self, TABLE_GIVEN, tableName)
            return starts.add(self)

        return caught_start

    patches.wrap(DataStreamWriter, "start", start)
    patches.wrap(DataStreamWriter, "toTable", to_table)
    if not hasattr(DataStreamWriter, "table"):  # Databricks has it
        patches.set(DataStreamWriter, "table", to_table(_no_table))
    for name in ("awaitAnyTermination", "resetTerminated", "addListener", "removeListener"):
        patches.wrap(StreamingQueryManager, name, _answers(watch, starts))
    _catch_dstreams(patches, watch)
    _catch_our_own(patches, watch, starts)
    patches.wrap(SparkSession.Builder, "getOrCreate", _classic_only(watch))
    _refuse_connect(patches, watch)


def _no_table(writer: Any, *_given: Any, **_options: Any) -> Any:
    raise AttributeError("'DataStreamWriter' object has no attribute 'table'")


def _answers(watch: Watch, starts: Starts) -> Callable[[Any], Any]:
    def wrapper(original: Any) -> Any:
        def answer(self: Any, *given: Any, **named: Any) -> Any:
            if not watch.applies():
                return original(self, *given, **named)
            if original.__name__ == "awaitAnyTermination":
                starts.all_awaited()
            return True if given or named.get("timeout") is not None else None

        return answer

    return wrapper


def _catch_our_own(patches: Patches, watch: Watch, starts: Starts) -> None:
    """Catch floodmark.start(), which would take a lease and leave a note."""
    from floodmark.engine.start import launch

    def wrapper(original: Any) -> Any:
        def start(writer: Any, checkpoint: Any, *, name: Any = None, allow: Any = ()) -> Any:
            if not watch.applies():
                return original(writer, checkpoint, name=name, allow=allow)
            named = writer if name is None else writer.queryName(name)
            return starts.add(named.option(CHECKPOINT_LOCATION, str(checkpoint)))

        return start

    patches.wrap(launch, "start", wrapper)


def _catch_dstreams(patches: Patches, watch: Watch) -> None:
    from pyspark.streaming import StreamingContext

    def start(original: Any) -> Any:
        def refused(self: Any) -> Any:
            if not watch.applies():
                return original(self)
            line = watch.line()
            raise WrongUse(
                "the script starts DStreams, which have no plan to judge",
                f"{watch.source.path}, line {line}: StreamingContext.start()",
                "floodmark judges Structured Streaming: writeStream….start().",
            )

        return refused

    patches.wrap(StreamingContext, "start", start)


def _classic_only(watch: Watch) -> Callable[[Any], Any]:
    import os

    def wrapper(original: Any) -> Any:
        def get_or_create(self: Any) -> Any:
            mode = str(self._options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "")))
            names = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
            remote = REMOTE in self._options or any(name in os.environ for name in names)
            if watch.applies() and (remote or mode.lower() == "connect"):
                raise _CONNECT
            return original(self)

        return get_or_create

    return wrapper


def _refuse_connect(patches: Patches, watch: Watch) -> None:
    """Refuse a session that Connect's own classes built."""

    def refused(original: Any) -> Any:
        def start(self: Any, *given: Any, **named: Any) -> Any:
            if watch.applies():
                raise _CONNECT
            return original(self, *given, **named)

        return start

    def patch(module: ModuleType) -> None:
        patches.wrap(module.DataStreamWriter, "start", refused)
        patches.wrap(module.DataStreamWriter, "toTable", refused)

    # Importing it brings pandas and grpc along, which costs as much as a tenth of the verdict.
    patches.when_imported("pyspark.sql.connect.streaming.readwriter", patch)
