"""Runs DStreams until they end, are stopped, or cannot continue.

Every start is a recovery: a folder without a checkpoint first gets one, for the context that the
code builds. After a failure a new process starts again from the folder, with the same policy as
for pipelines.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import CODEC
from floodmark.engine.dstreams.before_start import judge_dstream
from floodmark.engine.dstreams.context_recovery import ContextRecovery, DStreamOptions
from floodmark.engine.dstreams.declaration import DStreamPipeline
from floodmark.engine.dstreams.progress import DStreamReader
from floodmark.engine.dstreams.standstill import Standstill
from floodmark.engine.dstreams.start_thread import Starting
from floodmark.engine.run.ending import stopped
from floodmark.engine.run.failure import Failure, FailureKind, is_outage, sentence_of
from floodmark.engine.run.listeners import ToldView
from floodmark.engine.run.live_table import View, choose_view
from floodmark.engine.run.new_process import Carried, CarriedStream, NewJvmNeeded
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.progress import ProgressFile, progress_file
from floodmark.engine.run.restart_policy import GiveUp, decide
from floodmark.engine.run.signals import StopSignals
from floodmark.engine.run.stream import PipelineReport, RunReport
from floodmark.engine.spark.hadoop import checkpoint_files, qualified
from floodmark.engine.spark.jvm import end_words, is_gone, kill
from floodmark.engine.spark.session import (
    SessionOptions,
    build_session,
    end_session,
    require_settings,
    running_session,
)
from floodmark.engine.start.before_start import IN_USE, allowed_rules
from floodmark.engine.start.launch import take_lease
from floodmark.engine.start.lease import leave_behind, superseded
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.storage.files import WritableFiles, open_files
from floodmark.storage.load import load

_POLL_MS = 200
_END_SECONDS = 30.0
_MANY = 100
_LOG = "spark.streaming.receiver.writeAheadLog.enable"


@dataclass
class _Counts:
    batches: int = 0
    rows: int = 0
    last_batch: int | None = None
    restarts: int = 0
    failures: list[Failure] = field(default_factory=list)


def run_dstream(
    pipeline: DStreamPipeline,
    application: Path,
    request: RunOptions,
    options: DStreamOptions,
    view: View | None = None,
) -> RunReport:
    """Run one application of DStreams to its end."""
    if request.trigger is not None:
        raise WrongUse(
            f"dstream {pipeline.name} has its own batch interval",
            "--available-now, --once and --trigger are for Structured Streaming.",
            "Leave them out; @dstream(batch=…) sets the interval.",
        )
    values = pipeline.settle(dict(request.settings))
    checkpoint = pipeline.checkpoint_for(values)
    stop = StopSignals()
    with stop.listening():
        running = running_session()
        if running is not None:
            require_settings(running, request.conf)
        spark = running or build_session(_session(pipeline, checkpoint, request))
        run = None
        try:
            stop.listen()  # pyspark replaces the handler by its own
            if running is None:
                stop.when_stuck = partial(kill, spark)
            shown = view or choose_view([pipeline.name])
            with ToldView(shown, request.listeners) as shown:
                run = _Run(spark, pipeline, application, values, checkpoint, request, shown, stop)
                return run.to_the_end(options)
        finally:
            if running is None:
                end_session(spark, by_force=run is not None and run.held)


def _session(pipeline: DStreamPipeline, checkpoint: str, request: RunOptions) -> SessionOptions:
    conf = {_LOG: "true", **pipeline.conf, **request.conf}
    codec = _recorded_codec(checkpoint)
    if codec is not None:
        conf.setdefault(CODEC, codec)  # Spark reads a checkpoint with the codec that it writes
    name = f"floodmark: {pipeline.name}"
    return SessionOptions(name, (), conf, request.log, request.stdout_to_stderr)


def _recorded_codec(checkpoint: str) -> str | None:
    try:
        found = load(open_files(checkpoint)).dstreams
    except Exception:  # not there yet, or on a storage that only Spark reaches
        return None
    return None if found is None else found.codec


class _Run:
    def __init__(
        self,
        spark: Any,
        pipeline: DStreamPipeline,
        application: Path,
        values: Mapping[str, Any],
        checkpoint: str,
        request: RunOptions,
        view: View,
        stop: StopSignals,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._request = request
        self._view = view
        self._stop = stop
        self._checkpoint = checkpoint
        self._location = qualified(spark, checkpoint)
        self._files: WritableFiles = checkpoint_files(spark, self._location)
        self._recovery = ContextRecovery(
            spark,
            pipeline,
            application,
            dict(values),
            self._location,
            self._files,
            self._say,
            checkpoint,
            IN_USE in allowed_rules(request.allowed),
        )
        self._lines: ProgressFile | None = None
        self._counts = _Counts()
        self.held = False
        """True while a batch goes on that only the end of its process can stop."""
        carried = request.carried.streams.get(pipeline.name)
        if carried is not None:
            self._go_on_from(carried)

    def to_the_end(self, options: DStreamOptions) -> RunReport:
        allowed = allowed_rules(self._request.allowed)
        for warning in judge_dstream(
            self._spark, self._pipeline.name, self._location, self._files, allowed
        ):
            self._say(warning)
        lease, unleased = take_lease(
            self._files, self._pipeline.name, self._spark, IN_USE in allowed
        )
        for warning in unleased:
            self._say(warning)
        lease.hold(lambda: not is_gone(self._spark))
        try:
            if self._request.carried.streams:
                # An earlier process has already begun anew: this one goes on from there.
                options = DStreamOptions(old_code=options.old_code)
            return self._report(self._one_start(options, lease))
        finally:
            lease.release()
            if self._lines is not None:
                self._lines.close()

    def _one_start(self, options: DStreamOptions, lease: Any) -> str:
        """Run one start; return how it ended: finished or stopped."""
        ssc = self._recovery.recover(options)
        starting, has_started = Starting(ssc.start), False
        if self._lines is None:
            self._lines = progress_file(self._request.progress, self._location, self._say)
        reader, standstill = DStreamReader(self._pipeline.name, ssc), Standstill(ssc)
        self._view.state(self._pipeline.name, "running")
        try:
            while not self._stop.asked:
                has_started = has_started or starting.is_over(_POLL_MS / 1000)
                if has_started and ssc._jssc.awaitTerminationOrTimeout(_POLL_MS):
                    self._read(reader)
                    return "finished"
                self._read(reader)
                if lease.lost:
                    self._end(ssc, graceful=False)
                    raise superseded(self._pipeline.name, self._location)
                still = standstill.words()
                if still is not None:
                    self._say(still)
                for listener in self._request.listeners:
                    listener.turned()
        except FloodmarkError:
            raise
        except Exception as error:
            with contextlib.suppress(Exception):
                self._read(reader)
            return self._failed(ssc, error)
        self._say("finishing the running batches")
        if not has_started:
            self._say("it still plans missed batches; a second signal ends it now")
        self._end(ssc, graceful=True)
        self._read(reader)
        return "stopped"

    def _read(self, reader: DStreamReader) -> None:
        for batch in reader.new():
            self._counts.batches += 1
            self._counts.rows += batch.rows
            self._counts.last_batch = batch.batch
            self._counts.failures.clear()
            if self._lines is not None:
                self._lines.add(batch)
            self._view.batch(batch)

    def _failed(self, ssc: Any, error: Exception) -> str:
        gone = is_gone(self._spark, error)
        cause = end_words(self._spark) if gone else sentence_of(error)
        kind = FailureKind.OUTAGE if is_outage(f"{cause} {error}") else FailureKind.CODE
        batch = None if gone else self._pending()
        self._counts.failures.append(
            Failure(batch, (), cause, FailureKind.ENGINE if gone else kind)
        )
        if not gone:
            self._end(ssc, graceful=False)
        if self._stop.asked:
            return "stopped"
        decision = decide(self._request.restart, self._counts.failures)
        if isinstance(decision, GiveUp):
            name = f"dstream {self._pipeline.name}"
            failure = self._counts.failures[-1]
            raise stopped(name, self._checkpoint, failure, decision, self._request.log, "")
        self._counts.restarts += 1
        self._say(f"failed: {cause}")
        self._say(f"starts again in {decision:g} s")
        due = time.monotonic() + decision
        while time.monotonic() < due and not self._stop.asked:
            self._stop.wait(_POLL_MS / 1000)
        if self._is_stopping():
            return "stopped"
        # A failed context may hold on to its JVM, and a second one would then wait for ever.
        log = self._request.log
        carried = {self._pipeline.name: self._carried()}
        raise NewJvmNeeded(cause, Carried(carried, str(log) if log else None))

    def _is_stopping(self) -> bool:
        return self._stop.asked

    def _pending(self) -> int | None:
        """Return the oldest batch that is not finished."""
        try:
            found = load(self._files).dstreams
        except FloodmarkError:
            return None
        return min(found.pending_times or (), default=None) if found else None

    def _end(self, ssc: Any, graceful: bool) -> None:
        """End the context; gracefully, it processes received input until a second signal.

        A start that still plans its missed batches holds the context's lock. Without grace nothing
        waits for that, or a run that another run has superseded would continue beside it.
        """

        def end(gracefully: bool) -> None:
            with contextlib.suppress(Exception):  # the folder says how it ended
                ssc.stop(stopSparkContext=False, stopGraceFully=gracefully)

        ending = threading.Thread(target=end, args=(graceful,), daemon=True)
        ending.start()
        while graceful and ending.is_alive() and not self._stop.hurried():
            ending.join(_POLL_MS / 1000)
        ending.join(0 if graceful else _END_SECONDS)
        if ending.is_alive():
            self.held = True

    def _say(self, words: str) -> None:
        self._view.say(self._pipeline.name, words)

    def _go_on_from(self, carried: CarriedStream) -> None:
        self._counts = _Counts(
            carried.batches,
            carried.rows,
            carried.last_batch,
            carried.restarts,
            list(carried.failures),
        )
        if carried.lease is not None:
            leave_behind(carried.lease)

    def _carried(self) -> CarriedStream:
        counts = self._counts
        return CarriedStream(
            tuple(counts.failures),
            counts.restarts,
            counts.batches,
            0,
            counts.rows,
            None,
            counts.last_batch,
            None,
        )

    def _report(self, ended: str) -> RunReport:
        counts = self._counts
        return RunReport(
            (
                PipelineReport(
                    self._pipeline.name,
                    self._checkpoint,
                    None,
                    ended,
                    counts.batches,
                    counts.rows,
                    counts.last_batch,
                    counts.restarts,
                    None,
                ),
            )
        )
