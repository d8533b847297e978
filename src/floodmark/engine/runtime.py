"""Runs pipelines until they end, are stopped, or cannot go on.

One thread, one loop: it starts what is due, reads what Spark reports, and decides
after each failure whether to start again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.checkpoint.layout import NOTES
from floodmark.engine.application import Application
from floodmark.engine.building import call_pipeline, configure
from floodmark.engine.failure import Failure, failure_of
from floodmark.engine.launch import Launched, Origin, Prepared, begin, prepare, remove_half_made
from floodmark.engine.look import SHARED_CHECKPOINT, Objection, refuse, require_known
from floodmark.engine.parameters import refuse_unknown
from floodmark.engine.pipeline import Pipeline
from floodmark.engine.progress import ProgressFile, ProgressReader
from floodmark.engine.session import SessionWish, build_session, end_session, running_session
from floodmark.engine.signals import StopSignals
from floodmark.engine.starting import Start
from floodmark.engine.stopping import finish
from floodmark.engine.triggers import Trigger
from floodmark.engine.view import View, choose_view
from floodmark.errors import StoppedMidway, WrongUse

_POLL_SECONDS = 0.2
SAME_FAILURE_TIMES = 3
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class RestartPolicy:
    on_failure: bool = False
    most: int = 10
    """Starts again in a row; a batch that commits begins the count anew."""
    first_wait: float = _FIRST_WAIT_SECONDS

    def wait(self, failures: int) -> float:
        return float(min(self.first_wait * 2 ** (failures - 1), _LONGEST_WAIT_SECONDS))


@dataclass(frozen=True)
class RunWish:
    trigger: Trigger | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    start: Start = field(default_factory=Start)
    allowed: frozenset[str] = frozenset()
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    progress: Path | None = None
    """None: `_floodmark/progress.jsonl` in each checkpoint that lies on a local disk."""
    conf: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    stdout_to_stderr: bool = False


@dataclass(frozen=True)
class PipelineReport:
    pipeline: str
    checkpoint: str
    query_id: str | None
    ended: str
    """finished, stopped or failed"""
    batches: int
    rows: int
    last_batch: int | None
    """The last one that this run committed."""
    restarts: int
    cause: str | None


@dataclass(frozen=True)
class RunReport:
    pipelines: tuple[PipelineReport, ...]


def run_application(application: Application, wish: RunWish, view: View | None = None) -> RunReport:
    """Runs every pipeline of the application to its end."""
    pipelines = application.pipelines
    require_known(wish.allowed)
    refuse_unknown({one.name: one.parameters for one in pipelines}, wish.settings)
    streams = [_Stream.of(one, application, wish) for one in pipelines]
    _refuse_shared([(one.pipeline.name, one.checkpoint) for one in streams], wish.allowed)
    stop = StopSignals()
    with stop.listening():
        running = running_session()
        spark = running or build_session(_session_wish(pipelines, wish))
        # A session of one's own needs no other beside it.
        sessions = {
            one.name: spark if running is None and len(pipelines) == 1 else spark.newSession()
            for one in pipelines
        }
        run = None
        try:
            stop.listen()  # pyspark puts a handler of its own in place
            with view or choose_view([one.name for one in pipelines]) as shown:
                run = _Run(sessions, streams, wish, shown, stop)
                return run.to_the_end()
        finally:
            if running is None:
                end_session(spark, by_force=run is not None and run.held)


def _session_wish(pipelines: tuple[Pipeline, ...], wish: RunWish) -> SessionWish:
    conf: dict[str, str] = {}
    for pipeline in pipelines:
        for key, value in pipeline.conf.items():
            if conf.setdefault(key, value) != value and not key.startswith("spark.sql."):
                raise WrongUse(
                    f"two pipelines of the application want different values of {key}: "
                    f"{conf[key]} and {value}",
                    "It belongs to the whole application.",
                    "Give them one value, or run them as two applications.",
                )
    needs = dict.fromkeys(need for pipeline in pipelines for need in pipeline.needs)
    name = "floodmark: " + ", ".join(pipeline.name for pipeline in pipelines)
    return SessionWish(name, tuple(needs), {**conf, **wish.conf}, wish.log, wish.stdout_to_stderr)


def _refuse_shared(checkpoints: list[tuple[str, str]], allowed: frozenset[str]) -> None:
    first: dict[str, str] = {}
    objections = []
    for name, checkpoint in checkpoints:
        place = checkpoint if "://" in checkpoint else str(Path(checkpoint).resolve())
        place = place.rstrip("/")
        if place in first:
            objections.append(
                Objection(
                    SHARED_CHECKPOINT,
                    f"pipelines {first[place]} and {name} have one checkpoint: {checkpoint}",
                    "A checkpoint belongs to one query: each would run the other's batches.",
                    "Give each its own folder.",
                )
            )
        first.setdefault(place, name)
    refuse([one for one in objections if one.name not in allowed])


class _Stream:
    """One pipeline of the run, through all its starts."""

    def __init__(
        self,
        pipeline: Pipeline,
        application: Application,
        values: Mapping[str, Any],
        checkpoint: str,
    ) -> None:
        self.pipeline = pipeline
        self.checkpoint = checkpoint
        self.values = values
        self.origin = Origin(pipeline.name, str(application.path), application.fingerprint, values)
        self.launched: Launched | None = None
        self.reader: ProgressReader | None = None
        self.lines: ProgressFile | None = None
        self.due = 0.0
        self.ended: str | None = None
        self.failures: list[Failure] = []
        self.restarts = 0
        self.batches = 0
        self.rows = 0
        self.last_batch: int | None = None
        self.query_id: str | None = None

    @staticmethod
    def of(pipeline: Pipeline, application: Application, wish: RunWish) -> _Stream:
        own = {one.name for one in pipeline.parameters}
        values = pipeline.settle({k: v for k, v in wish.settings.items() if k in own})
        return _Stream(pipeline, application, values, pipeline.checkpoint_for(values))

    @property
    def name(self) -> str:
        return self.pipeline.name

    def report(self) -> PipelineReport:
        cause = self.failures[-1].cause if self.ended == "failed" and self.failures else None
        return PipelineReport(
            self.name,
            self.checkpoint,
            self.query_id,
            self.ended or "stopped",
            self.batches,
            self.rows,
            self.last_batch,
            self.restarts,
            cause,
        )


class _Run:
    def __init__(
        self,
        sessions: Mapping[str, Any],
        streams: list[_Stream],
        wish: RunWish,
        view: View,
        stop: StopSignals,
    ) -> None:
        self._sessions = sessions
        self._streams = streams
        self._wish = wish
        self._view = view
        self._stop = stop
        self.held = False
        """A batch goes on that nothing but the end of its process can stop."""
        for stream in streams:
            configure(sessions[stream.name], {**stream.pipeline.conf, **wish.conf})

    def to_the_end(self) -> RunReport:
        # All are looked at before the first is started: a refusal leaves nothing half done.
        prepared = [(stream, self._prepare(stream)) for stream in self._streams]
        try:
            for stream, ready in prepared:
                self._begin(stream, ready)
            while any(stream.ended is None for stream in self._streams):
                if self._stop.asked:
                    self._end_all("finishing the running batch")
                    break
                self._turn()
                self._stop.wait(_POLL_SECONDS)
        except BaseException:
            self._end_all("stopping the other pipelines")
            raise
        finally:
            for stream in self._streams:
                if stream.lines is not None:
                    stream.lines.close()
        return RunReport(tuple(stream.report() for stream in self._streams))

    def _prepare(self, stream: _Stream) -> Prepared:
        session, origin = self._sessions[stream.name], stream.origin
        writer = call_pipeline(
            stream.pipeline, origin.application, session, self._wish.start, stream.values
        )
        if self._wish.trigger is not None:
            writer = self._wish.trigger.on(writer)
        return prepare(writer, stream.checkpoint, stream.origin, self._wish.allowed)

    def _begin(self, stream: _Stream, prepared: Prepared) -> None:
        for warning in prepared.warnings:
            self._view.say(stream.name, warning)
        stream.launched = begin(prepared, stream.name)
        stream.query_id = str(stream.launched.query.id)
        stream.reader = ProgressReader(stream.name, stream.launched.query)
        stream.lines = stream.lines or self._progress_file(prepared.situation.location)
        checkpoint = prepared.situation.saved.checkpoint
        if checkpoint is None or checkpoint.latest_batch is None:
            words = f"begins in a new checkpoint, {stream.checkpoint}"
        elif checkpoint.in_flight_batch is not None:
            words = f"runs batch {checkpoint.in_flight_batch} again, which was in flight"
        else:
            words = f"goes on after batch {checkpoint.latest_batch}"
        self._view.say(stream.name, words)
        self._view.state(stream.name, "running")

    def _progress_file(self, location: str) -> ProgressFile | None:
        if self._wish.progress is not None:
            return ProgressFile(self._wish.progress)
        if location.startswith("file:"):
            folder = Path("/" + location[len("file:") :].lstrip("/"))
            return ProgressFile(folder / NOTES / "progress.jsonl")
        return None

    def _turn(self) -> None:
        for stream in self._streams:
            if stream.ended is not None:
                continue
            if stream.launched is None:
                if time.monotonic() >= stream.due:
                    self._begin(stream, self._prepare(stream))
                continue
            # Before the reports: what is reported while we read is read the next time.
            active = bool(stream.launched.query.isActive)
            self._read(stream)
            if not active:
                self._judge_end(stream, stream.launched)
            elif stream.launched.lease.lost:
                stream.launched.query.stop()
                stream.ended = "failed"
                raise StoppedMidway(
                    f"pipeline {stream.name}: another run has taken over {stream.checkpoint}",
                    "This one had not answered for a while, and was taken for dead.",
                    "Leave the other run alone, or stop it and start this one again.",
                )

    def _read(self, stream: _Stream) -> None:
        assert stream.reader is not None
        for batch in stream.reader.new():
            stream.batches += 1
            stream.rows += batch.rows
            stream.last_batch = batch.batch
            stream.failures.clear()
            if stream.lines is not None:
                stream.lines.add(batch)
            self._view.batch(batch)

    def _judge_end(self, stream: _Stream, launched: Launched) -> None:
        self._read(stream)
        failure = failure_of(launched.query, launched.situation.files)
        launched.lease.release()
        stream.launched = None
        if failure is None:
            stream.ended = "finished"
            self._view.state(stream.name, "finished")
            return
        stream.failures.append(failure)
        self._decide(stream, failure, launched)

    def _decide(self, stream: _Stream, failure: Failure, launched: Launched) -> None:
        """Start again, or stop with the batch, its offsets and the cause named."""
        policy = self._wish.restart
        same = [one for one in stream.failures if one.signature == failure.signature]
        if not policy.on_failure:
            stream.ended = "failed"
            remove_half_made(launched.situation)
            raise _stopped(stream, failure, self._wish.log, f"pipeline {stream.name} failed")
        if len(same) >= SAME_FAILURE_TIMES:
            stream.ended = "failed"
            raise _stopped(
                stream,
                failure,
                self._wish.log,
                f"pipeline {stream.name} failed {len(same)} times in the same way",
            )
        if len(stream.failures) > policy.most:
            stream.ended = "failed"
            raise _stopped(
                stream,
                failure,
                self._wish.log,
                f"pipeline {stream.name} failed {len(stream.failures)} times in a row",
            )
        stream.restarts += 1
        wait = policy.wait(len(stream.failures))
        stream.due = time.monotonic() + wait
        self._view.say(stream.name, f"{_batch_words(failure)} failed: {failure.cause}")
        self._view.say(stream.name, f"starts again in {wait:g} s")
        self._view.state(stream.name, f"waits {wait:g} s")

    def _end_all(self, words: str) -> None:
        running = [stream for stream in self._streams if stream.launched is not None]
        for stream in running:
            self._view.say(stream.name, words)
            self._view.state(stream.name, "stopping")
        for stream in running:
            launched = stream.launched
            assert launched is not None
            if not finish(launched.query, self._stop.hurried):
                self._view.say(stream.name, "its code does not yield: the process ends with it")
                self.held = True
            self._read(stream)
            launched.lease.release()
            stream.launched = None
            stream.ended = stream.ended or "stopped"
            self._view.state(stream.name, "stopped")


def _batch_words(failure: Failure) -> str:
    return "the start" if failure.batch is None else f"batch {failure.batch}"


def _stopped(stream: _Stream, failure: Failure, log: Path | None, what: str) -> StoppedMidway:
    where = f": {_batch_words(failure)}" if failure.batch is not None else ""
    why = "\n".join([failure.cause, *failure.offsets])
    do = [
        "Nothing is lost: the next start runs the batch again over the same offsets."
        if failure.batch is not None
        else "No batch was in flight.",
        f"Correct the cause, then start again. `floodmark inspect {stream.checkpoint}` shows "
        "where it stands.",
    ]
    if log is not None:
        do.append(f"Spark's log is {log}.")
    return StoppedMidway(f"{what}{where}", why, "\n".join(do))
