"""Answers a supervisor's probes: does the run live, and does every pipeline make progress?

`/livez` is 200 while the run's loop turns; `/readyz` is 200 while every pipeline runs and
no pipeline is stalled. Both answer with the same JSON document.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from floodmark.engine.run.listeners import Listener
from floodmark.engine.run.listeners.answering import Reply
from floodmark.engine.run.progress import BatchProgress
from floodmark.wire import dumps

# Checks before a start wait for brokers and storage; nothing else keeps the loop this long.
_LOOP_STANDS_AFTER_SECONDS = 300.0
_STALLED_AFTER_SECONDS = 60.0
_STALLED_AFTER_INTERVALS = 10
_INTERVALS_KEPT = 20


@dataclass(frozen=True)
class PipelineHealth:
    pipeline: str
    state: str
    """starting, running, waits …, stopping, finished, stopped, failed"""
    last_commit_age_s: float | None
    usual_interval_s: float | None
    """The usual time between two commits: the median of the last ones."""
    stalled: bool
    """True where a batch has been running for much longer than batches usually take."""


@dataclass(frozen=True)
class HealthReport:
    alive: bool
    ready: bool
    pipelines: tuple[PipelineHealth, ...]


class _Pipeline:
    def __init__(self, now: float) -> None:
        self.state = "starting"
        self.busy_since: float | None = None
        self.committed: float | None = None
        self.intervals: deque[float] = deque(maxlen=_INTERVALS_KEPT)
        self.began = now


class Health(Listener):
    """Collects what the run reports; the thread that answers probes reads it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turned = clock()
        self._pipelines: dict[str, _Pipeline] = {}

    def turned(self) -> None:
        self._turned = self._clock()

    def state(self, pipeline: str, words: str) -> None:
        self._of(pipeline).state = words

    def batch(self, batch: BatchProgress) -> None:
        self.committed(batch.pipeline)

    def committed(self, pipeline: str) -> None:
        one, now = self._of(pipeline), self._clock()
        if one.committed is not None:
            one.intervals.append(now - one.committed)
        one.committed = one.busy_since = now

    def busy(self, pipeline: str, is_busy: bool) -> None:
        one = self._of(pipeline)
        if not is_busy:
            one.busy_since = None
        elif one.busy_since is None:
            one.busy_since = self._clock()

    def _of(self, pipeline: str) -> _Pipeline:
        return self._pipelines.setdefault(pipeline, _Pipeline(self._clock()))

    def report(self) -> HealthReport:
        now = self._clock()
        found = tuple(self._judged(name, one, now) for name, one in self._pipelines.items())
        stopping = any(one.state == "stopping" for one in found)
        alive = stopping or now - self._turned < _LOOP_STANDS_AFTER_SECONDS
        ready = alive and bool(found) and all(_gets_on(one) for one in found)
        return HealthReport(alive, ready, found)

    def reply(self, path: str) -> Reply:
        report = self.report()
        good = {"/livez": report.alive, "/readyz": report.ready}.get(path)
        status = 404 if good is None else 200 if good else 503
        return Reply(status, "application/json", dumps(report))

    def _judged(self, name: str, one: _Pipeline, now: float) -> PipelineHealth:
        usual = median(one.intervals) if one.intervals else None
        patience = max(_STALLED_AFTER_SECONDS, _STALLED_AFTER_INTERVALS * (usual or 0.0))
        return PipelineHealth(
            name,
            one.state,
            None if one.committed is None else round(now - one.committed, 1),
            None if usual is None else round(usual, 1),
            one.busy_since is not None and now - one.busy_since > patience,
        )


def _gets_on(one: PipelineHealth) -> bool:
    return one.state in ("running", "finished") and not one.stalled
