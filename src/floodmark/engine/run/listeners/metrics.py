"""Counts what a run does, and answers Prometheus' scrapes with the counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from floodmark.connectors.registry import kind_named, kind_of
from floodmark.engine.run.listeners import Listener
from floodmark.engine.run.listeners.answering import Reply
from floodmark.engine.run.progress import BatchProgress, SourceProgress
from floodmark.errors import FloodmarkError
from floodmark.metrics.exposition import CONTENT_TYPE, render
from floodmark.metrics.run import BUCKETS, RunFacts, phases_of, run_metrics

if TYPE_CHECKING:
    from floodmark.engine.run.live_table import View
    from floodmark.engine.start.query_to_start import QueryToStart


class RunMetrics(Listener):
    """Collects what the run reports; the thread that answers scrapes reads it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._facts: dict[str, RunFacts] = {}
        self.address: str | None = None
        """The metrics' address, which the first start prints."""

    def begins(self, pipeline: str, starting: QueryToStart, view: View, restarts: int) -> None:
        with self._lock:
            self._facts[pipeline] = replace(self._of(pipeline), restarts=restarts)
            address, self.address = self.address, None
        if address is not None:
            view.say(pipeline, f"metrics for Prometheus: {address}")

    def state(self, pipeline: str, words: str) -> None:
        running = words in ("running", "stopping")
        with self._lock:
            self._facts[pipeline] = replace(self._of(pipeline), running=running)

    def batch(self, batch: BatchProgress) -> None:
        with self._lock:
            self._facts[batch.pipeline] = after(
                self._of(batch.pipeline), batch, round(self._clock(), 3)
            )

    def _of(self, pipeline: str) -> RunFacts:
        return self._facts.get(pipeline) or RunFacts(pipeline)

    def text(self) -> str:
        with self._lock:
            facts = list(self._facts.values())
        return render(family for one in facts for family in run_metrics(one))

    def reply(self, path: str) -> Reply:
        if path.partition("?")[0] != "/metrics":
            return Reply(404, "text/plain; charset=utf-8", "The metrics are at /metrics.\n")
        return Reply(200, CONTENT_TYPE, self.text())


def after(facts: RunFacts, batch: BatchProgress, now: float) -> RunFacts:
    """Return the facts with one more batch."""
    phases = phases_of(batch.durations_ms)
    seconds = batch.duration_ms / 1000
    bucket = next((at for at, bound in enumerate(BUCKETS) if seconds <= bound), None)
    return replace(
        facts,
        batches=facts.batches + 1,
        rows=facts.rows + batch.rows,
        durations=tuple(n + (at == bucket) for at, n in enumerate(facts.durations)),
        seconds=round(facts.seconds + seconds, 3),
        phase_seconds={
            phase: round(facts.phase_seconds.get(phase, 0.0) + phases.get(phase, 0.0), 3)
            for phase in {**facts.phase_seconds, **phases}
        },
        last_batch=batch.batch,
        last_rows=batch.rows,
        last_phase_seconds=phases,
        last_seconds=seconds,
        last_commit_seconds=now,
        state_rows=batch.state_rows,
        state_bytes=batch.state_bytes,
        watermark_seconds=_seconds(batch.watermark),
        source_lag_records={
            str(number): records
            for number, source in enumerate(batch.sources)
            if (records := _lag(source)) is not None
        },
    )


def _lag(source: SourceProgress) -> int | None:
    """Return how many records Spark saw but has not read, where offsets count records."""
    kind = kind_named(kind_of(source.end))
    if not kind.has_topics or source.latest is None:
        return None
    try:
        return kind.count(source.end, source.latest)
    except FloodmarkError:
        return None


def _seconds(watermark: str | None) -> float | None:
    """Return the watermark in seconds; Spark's 1970 means that it saw no event yet."""
    if watermark is None or watermark.startswith("1970-01-01T00:00:00"):
        return None
    try:
        return datetime.fromisoformat(watermark.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
