"""The summary that `inspect --json` and `scan --json` give: names that users script against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.model import Checkpoint, Kind, StateOperator, Unreadable
from floodmark.checkpoint.timeline import Action, Batch, Restart, Status, restart
from floodmark.connectors.registry import kinds, look_alikes, recognise
from floodmark.connectors.source import SourceOffset, Traces
from floodmark.screen import fields_html, fields_text, line_text

if TYPE_CHECKING:  # a class of its own for each thing that is found: slow to load
    from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
    from floodmark.checkpoint.places.flow import Flow


@dataclass(frozen=True)
class SourceSummary:
    id: str
    """Its number in the plan, or its name where the code gives it one."""
    kind: str
    """kafka, delta, file, rate, and so on; `unknown` where no kind is recognised."""
    offset: Any
    """Where it stands, as the source writes it; null before its first batch."""


@dataclass(frozen=True)
class HowSure:
    sureness: str
    """`certain`, `probable`, `possible`, or `unknown`."""
    why: str
    """What shows that it is of this kind, or why nothing does."""


@dataclass(frozen=True)
class BatchSummary:
    batch: int
    """Its number."""
    status: Status
    """What became of it."""
    time_ms: int | None
    """When it was planned."""
    watermark_ms: int | None
    """The watermark that it ran with."""
    sources: tuple[SourceSummary, ...]
    """Where each source stands at its end."""


@dataclass(frozen=True)
class Inspection:
    path: str
    """The checkpoint."""
    kind: Kind
    """Which of the two APIs wrote it."""
    query_id: str | None
    """The id by which sinks know the query."""
    latest_batch: int | None
    """The highest in offsets/."""
    committed_batch: int | None
    """The highest in commits/."""
    in_flight_batch: int | None
    """Planned and not committed: Spark runs it again."""
    watermark_ms: int | None
    """What the next batch starts with."""
    batch_time_ms: int | None
    """When the latest batch was planned."""
    offset_log_version: int | None
    """1, or 2 where sources have names."""
    commit_log_version: int | None
    """1, 2 with unique ids of state, 3 with names of sinks."""
    sources: tuple[SourceSummary, ...]
    """Those of the latest batch."""
    conf: Mapping[str, str]
    """Settings that the checkpoint pins: they win over those of the session."""
    state: tuple[StateOperator, ...]
    """The stateful operators."""
    files: int
    """How many files it has."""
    bytes: int
    """How large they are together."""
    files_complete: bool
    """False where a very large remote checkpoint was not listed to its end."""
    unreadable: tuple[Unreadable, ...]
    """Files that cannot be read, and why."""
    restart: Restart | None
    """What Spark does if the query starts now."""
    state_missing: tuple[str, ...] = ()
    """What the restart needs of the state and does not find, in sentences."""
    could_be: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Source → other kinds whose offsets look the same, where nobody has said what it is."""
    recognised: Mapping[str, HowSure] = field(default_factory=dict)
    """Source → how sure its kind is, and what tells it."""
    dstreams: DStreamsCheckpoint | None = None
    """A DStreams folder: what its newest file tells."""
    flow: Flow | None = None
    """Whose checkpoint it is, in a declarative pipeline."""
    not_read: tuple[str, ...] = ()
    """Files that describe more and were not read: on an object store, a look costs 8 requests."""

    __repr__ = fields_text
    _repr_html_ = fields_html


@dataclass(frozen=True)
class ScanEntry:
    path: str
    """The checkpoint."""
    kind: Kind | None
    """Which of the two APIs wrote it; null where it cannot be read."""
    query_id: str | None
    """The id by which sinks know the query."""
    latest_batch: int | None
    """The highest in offsets/."""
    committed_batch: int | None
    """The highest in commits/."""
    in_flight_batch: int | None
    """Planned and not committed."""
    bytes: int
    """How large it is."""
    findings: tuple[str, ...]
    """The doctor's errors and warnings, as far as a listing and a few small files show them."""
    flow: Flow | None = None
    """Whose checkpoint it is, in a declarative pipeline."""

    __repr__ = line_text
    _repr_html_ = fields_html


def summarize_sources(sources: tuple[SourceOffset, ...]) -> tuple[SourceSummary, ...]:
    return tuple(SourceSummary(source.id, source.kind, source.offset) for source in sources)


def _could_be(checkpoint: Checkpoint) -> dict[str, tuple[str, ...]]:
    """Kinds whose offsets look the same, of sources of which nobody has said what they are."""
    unsaid = (one for one in checkpoint.sources if one.id not in checkpoint.said_kinds)
    found = {one.id: _alike(checkpoint, one) for one in unsaid if one.offset is not None}
    return {source: kinds for source, kinds in found.items() if kinds}


def _alike(checkpoint: Checkpoint, source: SourceOffset) -> tuple[str, ...]:
    if source.id in checkpoint.disputed:
        return tuple(one.name for one in kinds() if source.kind in one.looks_like)
    return look_alikes(source.kind)


def _how_sure(checkpoint: Checkpoint, source: SourceOffset) -> HowSure:
    if source.id in checkpoint.said_kinds:
        return HowSure("certain", "the user or the note of the last start says so")
    if source.id in checkpoint.disputed:
        return HowSure("unknown", checkpoint.disputed[source.id])
    found = recognise(Traces(source.offset, source.text, checkpoint.initial.get(source.id)))
    if found is None:
        return HowSure("unknown", "no kind that floodmark knows writes this")
    if found.kind != source.kind:
        return HowSure("possible", f"only {source.kind} writes the numbers of an earlier batch")
    return HowSure(found.sureness.name.lower(), found.why)


def summarize_batches(batches: Iterable[Batch]) -> list[BatchSummary]:
    return [
        BatchSummary(
            batch.batch,
            batch.status,
            batch.time_ms,
            batch.watermark_ms,
            summarize_sources(batch.sources),
        )
        for batch in batches
    ]


def inspection(
    checkpoint: Checkpoint, state_missing: tuple[str, ...] = (), flow: Flow | None = None
) -> Inspection:
    structured = checkpoint.kind is Kind.STRUCTURED_STREAMING
    return Inspection(
        checkpoint.path,
        checkpoint.kind,
        checkpoint.query_id,
        checkpoint.latest_batch,
        checkpoint.committed_batch,
        checkpoint.in_flight_batch,
        checkpoint.watermark_ms,
        checkpoint.batch_time_ms,
        checkpoint.offset_log_version,
        checkpoint.commit_log_version,
        summarize_sources(checkpoint.sources),
        checkpoint.conf,
        checkpoint.state_operators,
        len(checkpoint.files),
        checkpoint.bytes,
        checkpoint.complete,
        checkpoint.unreadable,
        restart(checkpoint, state_missing) if structured else None,
        state_missing,
        _could_be(checkpoint),
        {one.id: _how_sure(checkpoint, one) for one in checkpoint.sources if one.text is not None},
        checkpoint.dstreams,
        flow,
        checkpoint.not_read,
    )


def scan_entry(checkpoint: Checkpoint, found: tuple[str, ...] | None = None) -> ScanEntry:
    """`found`: what the doctor says; without it, what cannot be read and a start that fails."""
    findings = _plain_findings(checkpoint) if found is None else found
    return ScanEntry(
        checkpoint.path,
        checkpoint.kind,
        checkpoint.query_id,
        checkpoint.latest_batch,
        checkpoint.committed_batch,
        checkpoint.in_flight_batch,
        checkpoint.bytes,
        findings,
    )


def _plain_findings(checkpoint: Checkpoint) -> tuple[str, ...]:
    verdict = restart(checkpoint) if checkpoint.kind is Kind.STRUCTURED_STREAMING else None
    findings = tuple(f"{item.path}: {item.reason}" for item in checkpoint.unreadable)
    if verdict and verdict.action is Action.FAIL:
        findings += (verdict.words,)
    return findings
