"""Runs DStreams until they end, are stopped, or cannot go on.

Every start is a recovery: a folder without a checkpoint gets one first, of the context that the
code builds. What failed starts again from the folder in a new process, by the policy that
pipelines have.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.engine.dstreams.before_start import judge_dstream
from floodmark.engine.dstreams.carrying import (
    carried_over,
    require_readable,
    require_whole_state,
    set_aside,
    told_files,
)
from floodmark.engine.dstreams.catching_up import go_on_after_finished, write_under_newest_name
from floodmark.engine.dstreams.code_notes import (
    code_of,
    noted_code,
    require_same_code,
    write_code_note,
)
from floodmark.engine.dstreams.declaration import DStreamPipeline
from floodmark.engine.dstreams.founding import CarriedOver, Founded, found_context
from floodmark.engine.dstreams.progress import DStreamReader
from floodmark.engine.dstreams.quiet import require_quiet
from floodmark.engine.dstreams.standstill import Standstill
from floodmark.engine.dstreams.starting import Starting
from floodmark.engine.run.ending import stopped
from floodmark.engine.run.failure import Failure, FailureKind, is_outage, sentence_of
from floodmark.engine.run.listeners import ToldView
from floodmark.engine.run.new_process import Carried, CarriedStream, NewJvmNeeded
from floodmark.engine.run.progress import ProgressFile, progress_file
from floodmark.engine.run.restarting import GiveUp, decide
from floodmark.engine.run.runtime import RunOptions
from floodmark.engine.run.signals import StopSignals
from floodmark.engine.run.stream import PipelineReport, RunReport
from floodmark.engine.run.view import View, choose_view
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
from floodmark.errors import CannotRead, FloodmarkError, NotACheckpoint, NotThere, WrongUse
from floodmark.storage.files import WritableFiles, open_files
from floodmark.storage.load import load

_POLL_MS = 200
_END_SECONDS = 30.0
_MANY = 100
_LOG = "spark.streaming.receiver.writeAheadLog.enable"
_CODEC = "spark.io.compression.codec"


@dataclass(frozen=True)
class DStreamOptions:
    """What `run` takes for DStreams beside what it takes for pipelines."""

    fresh_with_state: bool = False
    old_code: bool = False
    trust: bool = False
    reshaping: str | None = None
    """A file with a function that turns the old state into the new."""


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
    """Runs one application of DStreams to its end."""
    if request.trigger is not None:
        raise WrongUse(
            f"dstream {pipeline.name} has batches of its own interval",
            "--available-now, --once and --trigger are for Structured Streaming.",
            "Leave them out; the interval stands in @dstream(batch=…).",
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
            stop.listen()  # pyspark puts a handler of its own in place
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
        conf.setdefault(_CODEC, codec)  # Spark reads a checkpoint with the codec that it writes
    name = f"floodmark: {pipeline.name}"
    return SessionOptions(name, (), conf, request.log, request.stdout_to_stderr)


def _recorded_codec(checkpoint: str) -> str | None:
    try:
        found = load(open_files(checkpoint)).dstreams
    except Exception:  # not there yet, or on a storage that only Spark reaches
        return None
    return None if found is None else found.codec


def _file_taken(found: DStreamsCheckpoint | None, time_ms: int) -> str:
    """Which file Spark took: the newest whose batch is the recovered one's."""
    if found is not None and found.checkpoint_time_ms == time_ms and found.restart_file:
        return found.restart_file
    return f"an older file, of the batch of {time_ms}: newer ones could not be read"


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
        self._application = application
        self._values = dict(values)
        self._request = request
        self._view = view
        self._stop = stop
        self._checkpoint = checkpoint
        self._location = qualified(spark, checkpoint)
        self._files: WritableFiles = checkpoint_files(spark, self._location)
        self._lines: ProgressFile | None = None
        self._counts = _Counts()
        self.held = False
        """A batch goes on that nothing but the end of its process can stop."""
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
                # A process before this one has begun anew already: this one goes on from there.
                options = DStreamOptions(old_code=options.old_code)
            return self._report(self._one_start(options, lease))
        finally:
            lease.release()
            if self._lines is not None:
                self._lines.close()

    def _one_start(self, options: DStreamOptions, lease: Any) -> str:
        """How it ended: finished or stopped."""
        ssc = self._recovered(options)
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
            self._say("it still plans batches that it missed; a second signal ends it now")
        self._end(ssc, graceful=True)
        self._read(reader)
        return "stopped"

    def _recovered(self, options: DStreamOptions) -> Any:
        saved = self._saved()
        code = code_of(self._pipeline, self._values)
        if saved is None:
            if options.fresh_with_state:
                self._say("there is no old state here: it begins with an empty one")
            self._found(code, None)
        elif options.fresh_with_state:
            assert saved.dstreams is not None
            self._require_quiet(saved, noted_code(self._files, saved.dstreams))
            carried = carried_over(
                self._spark, self._files, saved, options.trust, options.reshaping
            )
            self._tell_carried(saved.dstreams, carried)
            self._found(code, carried)
        else:
            assert saved.dstreams is not None
            require_readable(self._location, saved.dstreams)
            require_whole_state(self._location, saved.dstreams, str(self._application))
            note = noted_code(self._files, saved.dstreams)
            self._require_quiet(saved, note)
            if not options.old_code:
                require_same_code(
                    self._location, saved.dstreams, note, code, str(self._application)
                )
            elif note is None or note["code"] != code:
                self._say("runs the code that is saved in the checkpoint, not this file's")
            self._note(str(note["code"]) if note else "", saved.dstreams.zero_time_ms or 0)
            for words in set_aside(saved):
                self._say(words)
        return self._recover()

    def _require_quiet(self, saved: Checkpoint, note: Mapping[str, Any] | None) -> None:
        """What floodmark has started holds a lease; a plain script's context is watched."""
        if note is None and IN_USE not in allowed_rules(self._request.allowed):
            require_quiet(self._files, saved)

    def _saved(self) -> Checkpoint | None:
        try:
            found = load(self._files)
        except NotThere:
            return None
        except NotACheckpoint:
            if not self._files.level().files:
                return None
            raise
        if found.kind is not Kind.DSTREAMS:
            raise WrongUse(
                f"{self._location} is the checkpoint of a Structured Streaming query",
                "DStreams write other files, and Spark would see both.",
                "Give the DStreams a folder of their own.",
            )
        return found

    def _found(self, code: str, carried: CarriedOver | None) -> Founded:
        founded = found_context(
            self._spark,
            self._pipeline,
            self._values,
            self._location,
            self._files,
            carried,
            partial(self._note, code),
        )
        saved = ", ".join(f"{one / 1000:g} s" for one in sorted(set(founded.intervals_ms)))
        words = f"begins a new context in {self._checkpoint}"
        self._say(f"{words}, state saved every {saved}" if saved else words)
        for folder, number in founded.passed_over:
            files = "1 file that was" if number == 1 else f"{number:,} files that were"
            self._say(f"passes over {files} in {folder} before this context: Spark reads new ones")
        return founded

    def _note(self, code: str, zero_ms: int) -> None:
        try:
            write_code_note(self._files, self._pipeline, code, zero_ms, str(self._spark.version))
        except FloodmarkError as error:
            self._say(f"no note of this start was written: {error.what}")

    def _recover(self) -> Any:
        from pyspark.streaming import StreamingContext

        def absent() -> Any:
            raise CannotRead(f"{self._location}: Spark finds no checkpoint there")

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # DStreams are old: the user knows
                ssc = StreamingContext.getOrCreate(self._location, absent)
        except FloodmarkError:
            raise
        except Exception as error:
            raise CannotRead(
                f"{self._location}: Spark cannot recover the context",
                sentence_of(error),
                "It was written by another Spark or Python, or one of its classes is missing: run "
                f"it with those, or begin anew: "
                f"floodmark run {shlex.quote(str(self._application))} "
                "--fresh-with-state",
            ) from error
        time_ms = int(ssc._jssc.ssc().initialCheckpoint().checkpointTime().milliseconds())
        found = load(self._files).dstreams
        self._say(f"recovers the context from {_file_taken(found, time_ms)}")
        names = found.checkpoint_times if found else ()
        write_under_newest_name(ssc, max((time_ms, *names)))
        if found and found.checkpoint_time_ms == time_ms:
            time_ms = max(time_ms, found.planned_time_ms or 0)
            go_on_after_finished(ssc, time_ms)
        missed = (int(time.time() * 1000) - time_ms) // self._pipeline.batch_ms
        if missed > _MANY:
            self._say(f"makes up for {missed:,} batches of the time that it was down")
        return ssc

    def _tell_carried(self, found: DStreamsCheckpoint, carried: CarriedOver) -> None:
        keys = sum(len(pairs) for _, pairs in carried.states)
        unread = sum(len(one.unread) for one in carried.inputs)
        again = sum(
            len(names)
            for stream in found.streams
            for time_ms, names in stream.files.items()
            if time_ms > carried.as_of_ms
        )
        words = f"takes over {keys:,} keys as of the batch of {carried.as_of_ms}"
        words += f" and {unread:,} files that this state does not hold"
        self._say(words)
        for words in (*carried.set_aside, *map(told_files, carried.inputs)):
            self._say(words)
        for at, (_, pairs) in enumerate(carried.states if len(carried.states) > 1 else ()):
            self._say(
                f"the state of stream {found.lasting_streams[at]} ({len(pairs):,} keys) goes to "
                f"updateStateByKey number {at + 1} of the new code, in the order of its outputs"
            )
        if again:
            self._say(f"{again:,} of them were put out before: their output comes again")

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
        self._say(f"starts again in {decision.wait:g} s")
        due = time.monotonic() + decision.wait
        while time.monotonic() < due and not self._stop.asked:
            self._stop.wait(_POLL_MS / 1000)
        if self._is_stopping():
            return "stopped"
        # A context that has failed may hold on to its JVM, where a second one then waits for ever.
        log = self._request.log
        carried = {self._pipeline.name: self._carried()}
        raise NewJvmNeeded(cause, Carried(carried, str(log) if log else None))

    def _is_stopping(self) -> bool:
        return self._stop.asked

    def _pending(self) -> int | None:
        """The oldest batch that is not finished."""
        try:
            found = load(self._files).dstreams
        except FloodmarkError:
            return None
        return min(found.pending_times or (), default=None) if found else None

    def _end(self, ssc: Any, graceful: bool) -> None:
        """Gracefully: what was received is processed. A second signal ends it now.

        A start that still plans its missed batches holds the context's lock: without grace nobody
        waits for that, or a run that another has superseded would go on beside it.
        """

        def end(gracefully: bool) -> None:
            with contextlib.suppress(Exception):  # how it ended is read from the folder
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
