"""Builds the summary that `inspect --json` and `scan --json` print. Users script against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.model import Checkpoint, Kind, StateOperator, Unreadable
from floodmark.checkpoint.restart import Action, Restart, restart
from floodmark.checkpoint.timeline import Batch, Status
from floodmark.connectors.registry import recognise
from floodmark.connectors.source import SourceOffset, Traces
from floodmark.screen import ShownByFields, ShownInALine

if TYPE_CHECKING:  # a class of its own for each thing that is found: slow to load
    from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
    from floodmark.checkpoint.places.flow import Flow


@dataclass(frozen=True)
class SourceSummary:
    id: str
    """Its number in the plan, or its name if the code gives it one."""
    kind: str
    """kafka, delta, file, rate, and so on; `unknown` if no kind is recognised."""
    offset: Any
    """Its position, as the source writes it; null before its first batch."""


@dataclass(frozen=True)
class HowSure:
    sureness: str
    """`certain`, `probable`, `possible`, or `unknown`."""
    why: str
    """What shows its kind, or why its kind is not known."""


@dataclass(frozen=True)
class BatchSummary:
    batch: int
    """Its number."""
    status: Status
    """Whether it is committed, in flight, skipped or purged."""
    time_ms: int | None
    """The time when it was planned."""
    watermark_ms: int | None
    """The watermark that it ran with."""
    sources: tuple[SourceSummary, ...]
    """The position of each source after the batch."""


@dataclass(frozen=True, repr=False)
class Inspection(ShownByFields):
    """The position of a stream, as `inspect` shows it."""

    path: str
    """The checkpoint."""
    kind: Kind
    """The API that wrote it."""
    query_id: str | None
    """The id by which sinks know the query."""
    latest_batch: int | None
    """The highest batch in offsets/."""
    committed_batch: int | None
    """The highest batch in commits/."""
    in_flight_batch: int | None
    """The batch that is planned and not committed: Spark runs it again."""
    watermark_ms: int | None
    """The watermark that the next batch starts with."""
    batch_time_ms: int | None
    """When the latest batch was planned."""
    offset_log_version: int | None
    """1; 2 if sources have names."""
    commit_log_version: int | None
    """1; 2 with unique ids of state files; 3 with names of sinks."""
    sources: tuple[SourceSummary, ...]
    """The sources of the latest batch."""
    conf: Mapping[str, str]
    """Settings that the checkpoint pins: they override those of the session."""
    state: tuple[StateOperator, ...]
    """The stateful operators."""
    files: int
    """The number of its files."""
    bytes: int
    """The total size of its files."""
    files_complete: bool
    """False if a very large remote checkpoint was not listed to its end."""
    unreadable: tuple[Unreadable, ...]
    """Files that cannot be read, and why."""
    restart: Restart | None
    """What Spark does if the query starts now."""
    state_missing: tuple[str, ...] = ()
    """What is missing of the state that the restart needs, in sentences."""
    could_be: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Source → other kinds whose offsets look the same, if nobody has said its kind."""
    recognised: Mapping[str, HowSure] = field(default_factory=dict)
    """Source → how sure its kind is, and what shows it."""
    dstreams: DStreamsCheckpoint | None = None
    """The content of a DStreams folder, from its newest file."""
    flow: Flow | None = None
    """The flow of a declarative pipeline that it belongs to."""
    not_read: tuple[str, ...] = ()
    """Files with more details that were not read: on an object store, a look costs 8 requests."""


@dataclass(frozen=True, repr=False)
class ScanEntry(ShownInALine):
    """One checkpoint that `scan` has found."""

    path: str
    """The checkpoint."""
    kind: Kind | None
    """The API that wrote it; null if it cannot be read."""
    query_id: str | None
    """The id by which sinks know the query."""
    latest_batch: int | None
    """The highest batch in offsets/."""
    committed_batch: int | None
    """The highest batch in commits/."""
    in_flight_batch: int | None
    """The batch that is planned and not committed."""
    bytes: int
    """The total size of its files."""
    findings: tuple[str, ...]
    """The doctor's errors and warnings, as far as a listing and a few small files show them."""
    flow: Flow | None = None
    """The flow of a declarative pipeline that it belongs to."""


def summarize_sources(sources: tuple[SourceOffset, ...]) -> tuple[SourceSummary, ...]:
    return tuple(SourceSummary(source.id, source.kind, source.offset) for source in sources)


def _how_sure(checkpoint: Checkpoint, source: SourceOffset) -> HowSure:
    if source.id in checkpoint.said_kinds:
        return HowSure("certain", "the user or the note of the last start says so")
    if source.id in checkpoint.disputed:
        return HowSure("unknown", checkpoint.disputed[source.id])
    found = recognise(Traces(source.offset, source.text, checkpoint.initial.get(source.id)))
    if found is None:
        return HowSure("unknown", "no kind that floodmark knows writes such an offset")
    if found.kind != source.kind:
        return HowSure("possible", f"an earlier batch has numbers that only {source.kind} writes")
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


def _identity(
    checkpoint: Checkpoint,
) -> tuple[str, Kind, str | None, int | None, int | None, int | None]:
    """Return what `inspect` and `scan` both begin with."""
    return (
        checkpoint.path,
        checkpoint.kind,
        checkpoint.query_id,
        checkpoint.latest_batch,
        checkpoint.committed_batch,
        checkpoint.in_flight_batch,
    )


def inspection(
    checkpoint: Checkpoint, state_missing: tuple[str, ...] = (), flow: Flow | None = None
) -> Inspection:
    structured = checkpoint.kind is Kind.STRUCTURED_STREAMING
    return Inspection(
        *_identity(checkpoint),
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
        checkpoint.could_be,
        {one.id: _how_sure(checkpoint, one) for one in checkpoint.sources if one.text is not None},
        checkpoint.dstreams,
        flow,
        checkpoint.not_read,
    )


def scan_entry(checkpoint: Checkpoint, found: tuple[str, ...] | None = None) -> ScanEntry:
    """Return the row of a checkpoint in `scan`.

    `found`: the doctor's findings; without them, unreadable files and a start that fails.
    """
    findings = _plain_findings(checkpoint) if found is None else found
    return ScanEntry(*_identity(checkpoint), checkpoint.bytes, findings)


def _plain_findings(checkpoint: Checkpoint) -> tuple[str, ...]:
    verdict = restart(checkpoint) if checkpoint.kind is Kind.STRUCTURED_STREAMING else None
    findings = tuple(f"{item.path}: {item.reason}" for item in checkpoint.unreadable)
    if verdict and verdict.action in (Action.FAIL, Action.UNKNOWN):
        findings += (verdict.words,)
    return findings
