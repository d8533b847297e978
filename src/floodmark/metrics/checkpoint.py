"""Turns a checkpoint's facts into metrics: batches, commit age, sizes, findings, lag. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from floodmark.addresses import public_url
from floodmark.checkpoint.model import StateOperator
from floodmark.connectors.behind import Lag, PartLag, SourceLag
from floodmark.metrics.exposition import MetricFamily, MetricSample

MOST_PARTS = 100
"""A source with more partitions has only sums and its worst partition, not one series each."""
Labels = Mapping[str, str]


@dataclass(frozen=True)
class LastBatch:
    """Facts of the newest committed batch; all but its duration come from its progress line."""

    seconds: float | None = None
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    rows: int | None = None
    rows_out: int | None = None
    late_rows: int | None = None
    state_rows: int | None = None
    state_memory_bytes: int | None = None


@dataclass(frozen=True)
class CheckpointFacts:
    """The known facts. None means: not asked for, or there is none."""

    path: str
    up: bool = True
    """False if it cannot be read now; then nothing else is known."""
    query_id: str | None = None
    planned_batch: int | None = None
    committed_batch: int | None = None
    in_flight: bool | None = None
    last_commit_ms: int | None = None
    watermark_ms: int | None = None
    files: int | None = None
    bytes: int | None = None
    state: tuple[StateOperator, ...] = ()
    findings: Mapping[str, int] | None = None
    """Severity → the number of findings."""
    starts: int | None = None
    """The number of starts that floodmark has noted."""
    lag: Lag | None = None
    labels: Labels = field(default_factory=dict)
    """More labels for every series, such as the flow of a declarative pipeline."""
    last_batch: LastBatch = field(default_factory=LastBatch)
    partitions: bool = True
    """Whether sources have a series for each partition."""


def checkpoint_metrics(facts: CheckpointFacts) -> Iterator[MetricFamily]:
    where = {"checkpoint": public_url(facts.path), **facts.labels}

    def gauge(name: str, words: str, value: float | None, **more: str) -> MetricFamily:
        return _gauge(name, words, [(value, {**where, **more})])

    for name, words, value in (*_of_checkpoint(facts), *_of_last_batch(facts.last_batch)):
        yield gauge(f"floodmark_checkpoint_{name}", words, value)
    if facts.query_id is not None:
        words = "The query that the checkpoint belongs to."
        yield gauge("floodmark_checkpoint_info", words, 1, query_id=facts.query_id)
    for phase, seconds in facts.last_batch.phase_seconds.items():
        yield gauge(
            "floodmark_checkpoint_last_batch_phase_duration_seconds",
            "Time in each phase of the last batch.",
            seconds,
            phase=phase,
        )
    for one in facts.state:
        operator = str(one.operator)
        yield gauge(
            "floodmark_state_size_bytes", "Size of the state files.", one.bytes, operator=operator
        )
        yield gauge(
            "floodmark_state_partitions",
            "Partitions of the state.",
            one.partitions,
            operator=operator,
        )
    for severity, number in (facts.findings or {}).items():
        yield gauge(
            "floodmark_checkpoint_findings",
            "What the doctor finds, by severity.",
            number,
            severity=severity,
        )
    for source in facts.lag.sources if facts.lag else ():
        yield from _source_metrics(source, where, facts.partitions)


def _of_checkpoint(facts: CheckpointFacts) -> tuple[tuple[str, str, float | None], ...]:
    return (
        ("up", "Whether the checkpoint can be read.", facts.up),
        ("planned_batch", "The newest planned batch.", facts.planned_batch),
        ("committed_batch", "The newest committed batch.", facts.committed_batch),
        ("in_flight", "Whether a batch is planned and not committed.", facts.in_flight),
        (
            "last_commit_timestamp_seconds",
            "When the newest commit was written.",
            _seconds(facts.last_commit_ms),
        ),
        (
            "watermark_timestamp_seconds",
            "The event-time watermark that the next batch starts with.",
            _seconds(facts.watermark_ms),
        ),
        ("files", "Files of the checkpoint.", facts.files),
        ("size_bytes", "Size of the checkpoint.", facts.bytes),
        ("starts", "Starts that floodmark has noted.", facts.starts),
    )


def _of_last_batch(last: LastBatch) -> tuple[tuple[str, str, float | None], ...]:
    return (
        (
            "last_batch_duration_seconds",
            "Time of the last batch: Spark's own, or from its plan to its commit.",
            last.seconds,
        ),
        ("last_batch_input_rows", "Rows that the last batch read.", last.rows),
        ("last_batch_output_rows", "Rows that the last batch wrote.", last.rows_out),
        ("last_batch_late_rows", "Rows that the last batch dropped as late.", last.late_rows),
        ("state_rows", "Rows of the state.", last.state_rows),
        (
            "state_memory_bytes",
            "Memory of the state, as Spark reports it.",
            last.state_memory_bytes,
        ),
    )


def _source_metrics(source: SourceLag, where: Labels, partitions: bool) -> Iterator[MetricFamily]:
    labels = {**where, "source": source.id, "kind": source.kind}
    behind = source.behind
    worst = max((part.records for part in source.parts if part.records is not None), default=None)
    for name, words, value in (
        ("up", "Whether the source has answered.", float(source.error is None)),
        ("lag_records", "Unread records.", behind.records),
        ("lag_bytes", "Unread bytes; estimated for Kafka.", behind.bytes),
        ("lag_seconds", "The age of the oldest unread record or file.", _seconds(behind.ms)),
        ("lag_versions", "Unread versions of the table.", behind.versions),
        ("lag_files", "Unread files.", behind.files),
        ("lost", "Records or versions that were removed before they were read.", source.lost),
        (
            "retention_left_seconds",
            "How long retention keeps the unread records at least.",
            _seconds(source.retention_left_ms),
        ),
        ("partitions", "Partitions of the source.", len(source.parts) or None),
        ("partition_lag_records_max", "Unread records of the partition most behind.", worst),
    ):
        yield _gauge(f"floodmark_source_{name}", words, [(value, labels)])
    if partitions and len(source.parts) <= MOST_PARTS:
        yield from _part_metrics(source.parts, labels)


def _part_metrics(parts: Iterable[PartLag], labels: Labels) -> Iterator[MetricFamily]:
    found = [(part, {**labels, "partition": part.part}) for part in parts]
    for name, words, field_ in (
        ("position", "What the stream reads next.", "position"),
        ("end", "What would be written next.", "end"),
        ("earliest", "The oldest position that still exists.", "earliest"),
        ("lag_records", "Unread records.", "records"),
    ):
        values = [(getattr(part, field_), more) for part, more in found]
        whole = [(value if type(value) is int else None, more) for value, more in values]
        yield _gauge(f"floodmark_partition_{name}", words, whole)


def _gauge(name: str, words: str, values: Iterable[tuple[float | None, Labels]]) -> MetricFamily:
    samples = tuple(MetricSample(value, labels) for value, labels in values)
    return MetricFamily(name, "gauge", words, samples)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
