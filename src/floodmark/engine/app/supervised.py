"""Supervises each start() of a plain script for `floodmark run`: checks, lease, note, progress.

The script runs in the main thread, as it would under `python`. Another thread reads Spark's
reports and, after a signal, lets the running batches finish.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from floodmark.engine.app.caught_query import given_to_start, location_of
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import is_watched
from floodmark.engine.app.time_limit import ScriptEnded
from floodmark.engine.code.query import TABLE_GIVEN
from floodmark.engine.run.failure import Failure, failure_of
from floodmark.engine.run.listeners import Listener
from floodmark.engine.run.live_table import View
from floodmark.engine.run.new_process import Carried
from floodmark.engine.run.progress import ProgressFile, ProgressReader, progress_file
from floodmark.engine.run.signals import StopSignals
from floodmark.engine.run.stopping import finish
from floodmark.engine.run.stream import PipelineReport
from floodmark.engine.run.triggers import Trigger
from floodmark.engine.start.async_progress import GIVES_UP, with_async_progress
from floodmark.engine.start.launch import CodeOrigin, Launched, begin, next_batch, prepare
from floodmark.errors import FloodmarkError, Refused

_POLL_SECONDS = 0.2
_ENDS_WITHIN_SECONDS = 5.0
"""The time for a script to end after its queries have stopped."""


@dataclass(frozen=True)
class Supervision:
    name: str
    """The name for queries without a name in the code: the script's."""
    application: str | None
    fingerprint: str | None
    allowed: frozenset[str] = frozenset()
    trigger: Trigger | None = None
    progress: Path | None = None
    carried: Carried = field(default_factory=Carried)
    """The work of earlier processes of this run, as a failed script begins in a new process."""
    listeners: tuple[Listener, ...] = ()
    async_progress_ms: int | None = None


@dataclass
class _Running:
    name: str
    checkpoint: str
    launched: Launched
    reader: ProgressReader
    lines: ProgressFile | None
    first_batch: int
    batches: int = 0
    rows: int = 0
    last_batch: int | None = None
    restarts: int = 0
    ended: str | None = None
    failure: Failure | None = None

    def report(self) -> PipelineReport:
        return PipelineReport(
            self.name,
            self.checkpoint,
            str(self.launched.query.id),
            self.ended or "stopped",
            self.batches,
            self.rows,
            self.last_batch,
            self.restarts,
            self.failure.cause if self.failure else None,
        )


@dataclass
class Supervisor:
    what: Supervision
    view: View
    stop: StopSignals
    refused: FloodmarkError | None = None
    """The first refused start, which a script that catches the error must not hide."""
    _streams: list[_Running] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _over: threading.Event = field(default_factory=threading.Event)
    _drained: float | None = None
    _thread: threading.Thread | None = None

    def attach(self, patches: Patches) -> None:
        """Let every start() of this process go through this supervisor from now on."""
        global _attached
        if _attached or is_watched():
            return  # `floodmark run` already does it, or a verb only judges
        _attached = True
        patches.callback(_detach)
        from pyspark.sql.streaming import DataStreamWriter

        def start(original: Any) -> Any:
            def supervised(self_: Any, path: Any = None, *given: Any, **options: Any) -> Any:
                if _is_ours(sys._getframe(1)):
                    return original(self_, path, *given, **options)
                given_to_start(self_, given, options)
                writer = self_ if path is None else self_.option("path", path)
                return self.start(writer, original)

            return supervised

        def to_table(original: Any) -> Any:
            def supervised(self_: Any, tableName: str, *given: Any, **options: Any) -> Any:  # noqa: N803
                if _is_ours(sys._getframe(1)):
                    return original(self_, tableName, *given, **options)
                given_to_start(self_, given, options)
                setattr(self_, TABLE_GIVEN, tableName)
                return self.start(self_, lambda writer: original(writer, tableName))

            return supervised

        self.listen()
        patches.when_imported("pyspark.streaming.context", partial(self._refuse_dstreams, patches))
        patches.wrap(DataStreamWriter, "start", start)
        patches.wrap(DataStreamWriter, "toTable", to_table)

    def _refuse_dstreams(self, patches: Patches, streaming: Any) -> None:
        """Refuse a StreamingContext of the script, as it would run without lease, note and stop."""

        def start(original: Any) -> Any:
            def refused(context: Any) -> Any:
                if _is_ours(sys._getframe(1)):
                    return original(context)
                error = plain_dstreams(self.what.application or self.what.name)
                self.refused = self.refused or error
                raise error

            return refused

        patches.wrap(streaming.StreamingContext, "start", start)

    def start(self, writer: Any, original: Any) -> Any:
        """Start a query with a supervisor; `original` is Spark's own way to start the writer."""
        if self.stop.asked:
            raise ScriptEnded
        self.listen()
        if self.what.trigger is not None:
            writer = self.what.trigger.on(writer)
        name, checkpoint = location_of(writer)
        if checkpoint is None:
            shown = name or self.what.name
            self.view.say(shown, "has no checkpointLocation, so every start begins from scratch")
            return original(writer)
        with self._lock:
            shown = name or self._free_name()
        origin = CodeOrigin(shown, self.what.application, self.what.fingerprint, None)
        try:
            if self.what.async_progress_ms is not None:
                writer = with_async_progress(writer, self.what.async_progress_ms)
                self.view.say(shown, GIVES_UP.format(self.what.async_progress_ms))
            prepared = prepare(writer, checkpoint, origin, self.what.allowed)
            before = self.what.carried.streams.get(shown)
            for listener in self.what.listeners:
                restarts = before.restarts if before else 0
                listener.begins(shown, prepared.starting, self.view, restarts)
            launched = begin(prepared, None, original)
        except FloodmarkError as error:
            self.refused = self.refused or error
            raise
        for warning in launched.warnings:
            self.view.say(shown, warning)
        saved = prepared.starting.saved.checkpoint
        self.view.say(shown, _begins(saved, checkpoint))
        self.view.state(shown, "running")
        stream = _Running(
            shown,
            checkpoint,
            launched,
            ProgressReader(shown, launched.query),
            progress_file(
                self.what.progress, prepared.starting.location, partial(self.view.say, shown)
            ),
            next_batch(saved),
        )
        if before is not None:
            stream.batches, stream.rows = before.batches, before.rows
            stream.last_batch, stream.restarts = before.last_batch, before.restarts
        with self._lock:
            self._streams.append(stream)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="floodmark-supervisor", daemon=True
                )
                self._thread.start()
        return launched.query

    def _free_name(self) -> str:
        taken = {one.name for one in self._streams if one.ended is None}
        names = [self.what.name, *(f"{self.what.name}-{n}" for n in range(2, len(taken) + 3))]
        return next(name for name in names if name not in taken)

    def listen(self) -> None:
        """Handle signals instead of Spark's own handler; a handler of the script stays."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            module = str(getattr(handler, "__module__", ""))
            default = handler in (signal.SIG_DFL, signal.default_int_handler, None)
            if default or module.startswith(("pyspark", "floodmark")):
                signal.signal(number, self._hear)

    def _hear(self, number: int, frame: Any) -> None:
        if self._drained is not None:
            raise ScriptEnded  # the queries have ended, but the script goes on
        self.stop.hear(number, frame)
        if not self._going():
            raise ScriptEnded  # it has not started anything yet

    def _watch(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            with contextlib.suppress(Exception):  # the JVM may end at any time
                if self.stop.asked and self._drained is None:
                    self.drain()
                    self._drained = time.monotonic()
                for stream in self._going():
                    self._read(stream)
                    self._tell_busy(stream)
            for listener in self.what.listeners:
                listener.turned()
            if self._drained and time.monotonic() - self._drained > _ENDS_WITHIN_SECONDS:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                return

    def _tell_busy(self, stream: _Running) -> None:
        for listener in self.what.listeners:
            status = stream.launched.query._jsq.status()
            listener.busy(stream.name, bool(status.isTriggerActive()))

    def _going(self) -> list[_Running]:
        with self._lock:
            return [one for one in self._streams if one.ended is None]

    def _read(self, stream: _Running) -> None:
        active = bool(stream.launched.query.isActive)
        for batch in stream.reader.new():
            stream.batches += 1
            stream.rows += batch.rows
            stream.last_batch = batch.batch
            if stream.lines is not None:
                stream.lines.add(batch)
            self.view.batch(batch)
        if not active:
            self._end(stream, "finished")

    def _end(self, stream: _Running, words: str) -> None:
        if stream.ended is not None:
            return
        launched = stream.launched
        stream.failure = None
        if not self.stop.hurried():
            with contextlib.suppress(Exception):
                stream.failure = failure_of(launched.query, launched.starting.files)
        stream.ended = "failed" if stream.failure is not None else words
        self.view.state(stream.name, stream.ended)
        launched.lease.release()
        if stream.lines is not None:
            stream.lines.close()

    def drain(self) -> None:
        """Let every running batch finish, and end the queries."""
        for stream in self._going():
            if stream.launched.query.isActive:
                self.view.say(stream.name, "finishing the running batch")
                self.view.state(stream.name, "stopping")
                finish(stream.launched.query, self.stop.hurried)
                self._read_last(stream)

    def _read_last(self, stream: _Running) -> None:
        with self._lock:
            self._read(stream)
            if stream.ended == "finished":
                stream.ended = "stopped"

    def close(self) -> tuple[PipelineReport, ...]:
        """End the queries after their batches, as the script has ended."""
        self._over.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_ENDS_WITHIN_SECONDS)
        with contextlib.suppress(Exception):  # if the JVM has ended, so have the queries
            self.drain()
            for stream in self._going():
                self._read(stream)
        for stream in self._going():
            self._end(stream, "stopped")
        return tuple(one.report() for one in self._streams)

    def failures(self) -> list[tuple[str, str, Failure]]:
        return [(one.name, one.checkpoint, one.failure) for one in self._streams if one.failure]


def plain_dstreams(application: str) -> Refused:
    return Refused(
        f"{application} starts DStreams (StreamingContext.start), but floodmark supervises only "
        "those of @dstream",
        "A context that a script itself starts would run without lease, note and stop, and would "
        "recover old code without a warning.",
        'Move the code that builds the streams into a function: @dstream(checkpoint=…, batch="5s") '
        "def sales(ssc): …, without StreamingContext, start() and awaitTermination(). To take over "
        "its checkpoint and state: floodmark run APP.py --fresh-with-state. Or run the script with "
        "`python` or spark-submit, without floodmark.auto.",
    )


_attached = False


def _detach() -> None:
    global _attached
    _attached = False


def _begins(checkpoint: Any, place: str) -> str:
    if checkpoint is None or checkpoint.latest_batch is None:
        return f"begins in a new checkpoint, {place}"
    if checkpoint.in_flight_batch is not None:
        return f"runs batch {checkpoint.in_flight_batch} again, which was in flight"
    return f"goes on after batch {checkpoint.latest_batch}"


def _is_ours(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "floodmark"
