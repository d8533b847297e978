"""Runs pipelines until they end, are stopped, or cannot continue.

One thread runs one loop: it starts what is due, reads what Spark reports, and decides after
each failure whether to start again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

from floodmark.engine.app.built import configure
from floodmark.engine.pipelines.application import Application
from floodmark.engine.pipelines.building import call_pipeline
from floodmark.engine.pipelines.parameters import refuse_unknown
from floodmark.engine.run.ending import stopped
from floodmark.engine.run.failure import Failure, FailureKind, failure_of, in_flight
from floodmark.engine.run.listeners import ToldView
from floodmark.engine.run.live_table import View, choose_view
from floodmark.engine.run.new_process import Carried, NewJvmNeeded
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.progress import ProgressReader, progress_file
from floodmark.engine.run.restart_policy import GiveUp, decide, may_pass
from floodmark.engine.run.shared_session import shared_session
from floodmark.engine.run.signals import StopSignals
from floodmark.engine.run.stopping import finish
from floodmark.engine.run.stream import PipelineRun, RunReport
from floodmark.engine.spark.jvm import child_of, end_words, has_stopped, is_gone, kill, last_words
from floodmark.engine.spark.session import (
    end_session,
    require_settings,
    running_session,
)
from floodmark.engine.start.async_progress import GIVES_UP, with_async_progress
from floodmark.engine.start.before_start import allowed_rules, refuse
from floodmark.engine.start.launch import (
    Launched,
    Prepared,
    begin,
    next_batch,
    prepare,
    remove_half_made,
)
from floodmark.engine.start.lease import superseded
from floodmark.errors import FloodmarkError, StoppedMidway
from floodmark.rules.registry import all_rules
from floodmark.storage.files import place_name

_POLL_SECONDS = 0.2


def run_application(
    application: Application, options: RunOptions, view: View | None = None
) -> RunReport:
    """Run every pipeline of the application to its end."""
    pipelines = application.pipelines
    allowed = allowed_rules(options.allowed)
    refuse_unknown({one.name: one.parameters for one in pipelines}, options.settings)
    streams = [PipelineRun.of(one, application, options.settings) for one in pipelines]
    _refuse_shared([(one.pipeline.name, one.checkpoint) for one in streams], allowed)
    for stream in streams:
        if stream.name in options.carried.streams:
            stream.go_on_from(options.carried.streams[stream.name])
    stop = StopSignals()
    with stop.listening():
        running = running_session()
        if running is not None:
            require_settings(running, options.conf)
        places = [one.checkpoint for one in streams]
        spark = running or shared_session(pipelines, places, options)
        # A pipeline that builds its own session needs no other one.
        sessions = {
            one.name: spark if running is None and len(pipelines) == 1 else spark.newSession()
            for one in pipelines
        }
        run = None
        try:
            stop.listen()  # pyspark replaces the handler by its own
            if running is None:
                stop.when_stuck = partial(kill, spark)
            shown = view or choose_view([one.name for one in pipelines])
            with ToldView(shown, options.listeners) as shown:
                run = _Run(spark, sessions, streams, options, shown, stop)
                return run.to_the_end()
        finally:
            if running is None:
                end_session(spark, by_force=run is not None and run.held)


def _refuse_shared(checkpoints: list[tuple[str, str]], allowed: frozenset[str]) -> None:
    places = [(name, checkpoint, place_name(checkpoint)) for name, checkpoint in checkpoints]
    checks = (known.check_starts for known in all_rules())
    refuse([found for check in checks if check for found in check(places)], allowed)


class _EngineGone(Exception):
    """Raised when no query can start in this process any more."""


class _Run:
    def __init__(
        self,
        spark: Any,
        sessions: Mapping[str, Any],
        streams: list[PipelineRun],
        options: RunOptions,
        view: View,
        stop: StopSignals,
    ) -> None:
        self._spark = spark
        self._sessions = sessions
        self._streams = streams
        self._options = options
        self._view = view
        self._stop = stop
        self.held = False
        """True while a batch goes on that only the end of its process can stop."""
        for stream in streams:
            configure(sessions[stream.name], {**stream.pipeline.conf, **options.conf})

    def to_the_end(self) -> RunReport:
        try:
            self._start_all()
            while any(stream.ended is None for stream in self._streams):
                if self._stop.asked:
                    self._end_all("finishing the running batch")
                    self._tell_failures()
                    break
                if is_gone(self._spark):
                    raise _EngineGone
                self._turn()
                self._tell_listeners()
                self._stop.wait(_POLL_SECONDS)
        except Exception as error:
            if isinstance(error, _EngineGone) or is_gone(self._spark, error):
                self._go_on_without_engine()
            self._end_all("stopping the other pipelines")
            raise
        except BaseException:
            self._end_all("stopping the other pipelines")
            raise
        finally:
            for stream in self._streams:
                if stream.lines is not None:
                    stream.lines.close()
        return RunReport(tuple(stream.report() for stream in self._streams))

    def _tell_listeners(self) -> None:
        for listener in self._options.listeners:
            listener.turned()
            for stream in self._streams:
                if stream.launched is not None:
                    status = stream.launched.query._jsq.status()
                    listener.busy(stream.name, bool(status.isTriggerActive()))

    def _start_all(self) -> None:
        """Start all pipelines; judge all before the first starts, so that a refusal starts none."""
        prepared = []
        for stream in self._streams:
            if self._stop.asked:
                return
            ready = self._prepare_or_wait(stream)
            if ready is not None:
                prepared.append((stream, ready))
        for stream, ready in prepared:
            if self._stop.asked:
                return
            self._begin_or_wait(stream, ready)

    def _prepare_or_wait(self, stream: PipelineRun) -> Prepared | None:
        """Prepare a start; return None if something does not answer and the policy retries."""
        try:
            return self._prepare(stream)
        except FloodmarkError as error:
            self._retry_start(stream, error)
            return None

    def _begin_or_wait(self, stream: PipelineRun, prepared: Prepared) -> None:
        try:
            self._begin(stream, prepared)
        except FloodmarkError as error:
            self._retry_start(stream, error)

    def _retry_start(self, stream: PipelineRun, error: FloodmarkError) -> None:
        if is_gone(self._spark, error) or not (
            self._options.restart.on_failure and may_pass(error)
        ):
            raise error
        why = "" if not error.why else f": {error.why.splitlines()[0]}"
        stream.failures.append(Failure(None, (), f"{error.what}{why}", FailureKind.OUTAGE))
        self._decide(stream)

    def _prepare(self, stream: PipelineRun) -> Prepared:
        session, origin = self._sessions[stream.name], stream.origin
        writer = call_pipeline(
            stream.pipeline, origin.application, session, self._options.start, stream.values
        )
        if self._options.trigger is not None:
            writer = self._options.trigger.on(writer)
        if self._options.async_progress_ms is not None:
            writer = with_async_progress(writer, self._options.async_progress_ms)
            self._view.say(stream.name, GIVES_UP.format(self._options.async_progress_ms))
        return prepare(writer, stream.checkpoint, stream.origin, self._options.allowed)

    def _begin(self, stream: PipelineRun, prepared: Prepared) -> None:
        for warning in prepared.warnings:
            self._view.say(stream.name, warning)
        for listener in self._options.listeners:
            listener.begins(stream.name, prepared.starting, self._view, stream.restarts)
        stream.launched = begin(prepared, stream.name)
        for warning in stream.launched.warnings[len(prepared.warnings) :]:
            self._view.say(stream.name, warning)
        stream.query_id = str(stream.launched.query.id)
        stream.lease = stream.launched.lease.run
        stream.reader = ProgressReader(stream.name, stream.launched.query)
        stream.lines = stream.lines or progress_file(
            self._options.progress, prepared.starting.location, partial(self._view.say, stream.name)
        )
        checkpoint = prepared.starting.saved.checkpoint
        if stream.first_batch is None:
            stream.first_batch = next_batch(checkpoint)
        if checkpoint is None or checkpoint.latest_batch is None:
            words = f"begins in a new checkpoint, {stream.checkpoint}"
        elif checkpoint.in_flight_batch is not None:
            words = f"runs batch {checkpoint.in_flight_batch} again, which was in flight"
        else:
            words = f"goes on after batch {checkpoint.latest_batch}"
        self._view.say(stream.name, words)
        self._view.state(stream.name, "running")

    def _turn(self) -> None:
        for stream in self._streams:
            if stream.ended is not None:
                continue
            if stream.launched is None:
                if time.monotonic() >= stream.due and not self._stop.asked:
                    ready = self._prepare_or_wait(stream)
                    if ready is not None and not self._stop.asked:
                        self._begin_or_wait(stream, ready)
                continue
            # First this, then the reports: a report that comes meanwhile is read the next time.
            active = bool(stream.launched.query.isActive)
            self._read(stream)
            if not active:
                self._judge_end(stream, stream.launched)
            elif stream.launched.lease.lost:
                stream.launched.query.stop()
                stream.ended = "failed"
                raise superseded(stream.name, stream.checkpoint)

    def _read(self, stream: PipelineRun) -> None:
        assert stream.reader is not None
        for batch in stream.reader.new():
            stream.count(batch)
            if stream.lines is not None:
                stream.lines.add(batch)
            self._view.batch(batch)

    def _judge_end(self, stream: PipelineRun, launched: Launched) -> None:
        self._read(stream)
        failure = failure_of(launched.query, launched.starting.files)
        # The lease's own thread stops the query; a batch also fails where its sink notices.
        taken_over = launched.lease.lost or (failure is not None and _is_superseded(launched))
        launched.lease.release()
        if taken_over:
            stream.launched = None
            stream.ended = "failed"
            raise superseded(stream.name, stream.checkpoint)
        if failure is not None and has_stopped(self._spark):
            raise _EngineGone
        stream.launched = None
        if failure is None:
            stream.ended = "finished"
            self._view.state(stream.name, "finished")
            return
        stream.failures.append(failure)
        if not self._options.restart.on_failure:
            remove_half_made(launched.starting)
        self._decide(stream)

    def _decide(self, stream: PipelineRun) -> None:
        """Start again, or stop with an error that names the batch, its offsets and the cause."""
        decision = decide(self._options.restart, stream.failures)
        failure = stream.failures[-1]
        if isinstance(decision, GiveUp):
            stream.ended = "failed"
            raise self._stopped(stream, decision)
        stream.restarts += 1
        stream.due = time.monotonic() + decision
        self._view.say(stream.name, f"{failure.batch_words} failed: {failure.cause}")
        self._view.say(stream.name, f"starts again in {decision:g} s")
        self._view.state(stream.name, f"waits {decision:g} s")

    def _go_on_without_engine(self) -> NoReturn:
        """Treat the JVM's end as a failure of each pipeline; a new JVM needs a new process."""
        how = end_words(self._spark)
        going = [stream for stream in self._streams if stream.ended is None]
        failed = []
        for stream in going:
            launched, stream.launched = stream.launched, None
            if launched is None and stream.failures:
                continue  # it already waits for another start
            batch, offsets = (None, ()) if launched is None else in_flight(launched.starting.files)
            if launched is not None:
                stream.count_unreported(launched.starting.files)
                launched.lease.release()
            stream.failures.append(Failure(batch, offsets, how, FailureKind.ENGINE))
            failed.append(stream)
        for stream in failed:
            if self._stop.asked or child_of(self._spark) is None:
                stream.ended = "failed"
                raise self._stopped(stream, GiveUp("failed", for_good=False))
            self._decide(stream)
        log = self._options.log
        self._view.say(going[0].name, f"its log, {log or 'above'}, ends with: {last_words(log)}")
        due = max(stream.due for stream in going)
        while time.monotonic() < due and not self._stop.asked:
            self._stop.wait(_POLL_SECONDS)
        if self._stop.asked:
            self._tell_failures()
        carried = {one.name: one.carried() for one in self._streams}
        raise NewJvmNeeded(how, Carried(carried, str(log) if log else None))

    def _end_all(self, words: str) -> None:
        running = [stream for stream in self._streams if stream.launched is not None]
        for stream in running:
            self._view.say(stream.name, words)
            self._view.state(stream.name, "stopping")
        for stream in running:
            launched = stream.launched
            assert launched is not None
            if not finish(launched.query, self._stop.hurried):
                self._view.say(stream.name, "its code does not stop: the process ends with it")
                self.held = True
            self._read(stream)
            # A batch that was interrupted on purpose may fail with any exception.
            failure = (
                None
                if self._stop.hurried()
                else failure_of(launched.query, launched.starting.files)
            )
            if failure is not None:
                stream.failures.append(failure)
                self._view.say(stream.name, f"{failure.batch_words} failed: {failure.cause}")
            stream.count_unreported(launched.starting.files)
            launched.lease.release()
            stream.launched = None
            if stream.ended is None:
                stream.ended = "stopped" if failure is None else "failed"
            self._view.state(stream.name, stream.ended)

    def _tell_failures(self) -> None:
        """Report failed batches, as even a requested stop is then no success."""
        for stream in self._streams:
            if stream.ended == "failed":
                raise self._stopped(stream, GiveUp("failed while it was stopped", False))
        for stream in self._streams:
            if stream.ended is None and stream.failures:
                stream.ended = "failed"
                words = "was stopped while it waited to start again"
                raise self._stopped(stream, GiveUp(words, for_good=False))

    def _stopped(self, stream: PipelineRun, decision: GiveUp) -> StoppedMidway:
        options, failure = self._options, stream.failures[-1]
        name = f"pipeline {stream.name}"
        return stopped(name, stream.checkpoint, failure, decision, options.log, options.bisecting)


def _is_superseded(launched: Launched) -> bool:
    """Whether a query failed because another run has its checkpoint: a restart would not help."""
    with contextlib.suppress(FloodmarkError, OSError):
        return launched.lease.superseded()
    return launched.lease.lost
