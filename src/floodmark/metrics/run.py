"""Turns a run's facts into metrics: batches, rows, durations by phase, restarts, state. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from floodmark.metrics.exposition import MetricFamily, MetricSample

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of a batch's duration, in seconds."""
PHASES = (
    "latestOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "addBatch",
    "commitOffsets",
)
_OTHER = "other"


@dataclass(frozen=True)
class RunFacts:
    """The facts of one pipeline of a run, since the run began."""

    pipeline: str
    running: bool = False
    batches: int = 0
    rows: int = 0
    restarts: int = 0
    durations: tuple[int, ...] = (0,) * len(BUCKETS)
    """For each bound, how many batches took at most this time and more than the bound before."""
    seconds: float = 0.0
    """The duration of all batches together."""
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    last_batch: int | None = None
    last_rows: int | None = None
    last_phase_seconds: Mapping[str, float] = field(default_factory=dict)
    last_seconds: float | None = None
    last_commit_seconds: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    watermark_seconds: float | None = None
    source_lag_records: Mapping[str, int] = field(default_factory=dict)
    """Source → offsets between what the last batch read and what Spark saw as newest."""


def phases_of(durations_ms: Mapping[str, int]) -> dict[str, float]:
    """Return seconds by the phases that Spark names; an unknown name counts as other."""
    found: dict[str, float] = {}
    for name, value in durations_ms.items():
        if name != "triggerExecution":
            known = name if name in PHASES else _OTHER
            found[known] = found.get(known, 0.0) + value / 1000
    return found


def run_metrics(facts: RunFacts) -> Iterator[MetricFamily]:
    where = {"pipeline": facts.pipeline}

    def one(kind: str, name: str, words: str, value: float | None, **more: str) -> MetricFamily:
        sample = MetricSample(value, {**where, **more})
        return MetricFamily(f"floodmark_run_{name}", kind, words, (sample,))

    yield one("gauge", "up", "Whether the pipeline's query runs.", facts.running)
    yield one("counter", "batches_total", "Finished batches.", facts.batches)
    yield one("counter", "input_rows_total", "Rows that finished batches read.", facts.rows)
    yield one("counter", "restarts_total", "Restarts after a failure.", facts.restarts)
    yield _histogram(facts, where)
    for phase, value in facts.phase_seconds.items():
        words = "Time in each phase of a batch, all batches together."
        yield one("counter", "phase_duration_seconds_total", words, value, phase=phase)
    for phase, value in facts.last_phase_seconds.items():
        words = "Time in each phase of the last batch."
        yield one("gauge", "last_batch_phase_duration_seconds", words, value, phase=phase)
    words = "Time of the last batch, from its trigger to its end."
    yield one("gauge", "last_batch_duration_seconds", words, facts.last_seconds)
    yield one("gauge", "last_batch", "Number of the last finished batch.", facts.last_batch)
    yield one("gauge", "last_batch_input_rows", "Rows that the last batch read.", facts.last_rows)
    words = "When the last batch was reported as finished."
    yield one("gauge", "last_commit_timestamp_seconds", words, facts.last_commit_seconds)
    yield one("gauge", "state_rows", "Rows of the state.", facts.state_rows)
    words = "Memory of the state, as Spark reports it."
    yield one("gauge", "state_memory_bytes", words, facts.state_bytes)
    words = "The event-time watermark of the last batch."
    yield one("gauge", "watermark_timestamp_seconds", words, facts.watermark_seconds)
    for source, records in facts.source_lag_records.items():
        words = "Offsets that Spark saw and the last batch did not read."
        yield one("gauge", "source_lag_records", words, records, source=source)


def _histogram(facts: RunFacts, where: Mapping[str, str]) -> MetricFamily:
    samples = []
    reached = 0
    for bound, number in zip(BUCKETS, facts.durations, strict=True):
        reached += number
        samples.append(MetricSample(reached, {**where, "le": repr(bound)}, "_bucket"))
    samples.append(MetricSample(facts.batches, {**where, "le": "+Inf"}, "_bucket"))
    samples.append(MetricSample(facts.seconds, where, "_sum"))
    samples.append(MetricSample(facts.batches, where, "_count"))
    words = "Time of a batch, from its trigger to its end."
    return MetricFamily("floodmark_run_batch_duration_seconds", "histogram", words, tuple(samples))
