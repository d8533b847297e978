"""Joins offsets and commits: what happened to each batch.

offsets/N  is written first     planned
the sink and the state follow   processed
commits/N  is written last      committed
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.source import SourceOffset


class Status(str, Enum):
    COMMITTED = "committed"
    IN_FLIGHT = "in-flight"
    UNCOMMITTED_GAP = "uncommitted-gap"
    OFFSET_PURGED = "offset-purged"


@dataclass(frozen=True)
class Batch:
    """One batch of the query, as the two logs tell it."""

    batch: int
    """Its number."""
    status: Status
    """What became of it."""
    time_ms: int | None
    """The time when it was planned."""
    watermark_ms: int | None
    """The watermark that it began with."""
    sources: tuple[SourceOffset, ...]
    """The position of each source after the batch."""

    def __repr__(self) -> str:
        from floodmark.screen import line_text  # no command shows it

        return line_text(self)

    def _repr_html_(self) -> str:
        from floodmark.screen import fields_html

        return fields_html(self)


def timeline(checkpoint: Checkpoint, last: int | None = None) -> tuple[Batch, ...]:
    """Return every batch that is still logged, oldest first; `last` keeps the newest few."""
    batches = sorted({*checkpoint.offset_ids, *checkpoint.commit_ids})
    if last is not None:
        batches = batches[-last:] if last > 0 else []
    planned, committed = set(checkpoint.offset_ids), set(checkpoint.commit_ids)
    return tuple(
        _batch(checkpoint, batch, batch in planned, batch in committed) for batch in batches
    )


def _batch(checkpoint: Checkpoint, batch: int, planned: bool, committed: bool) -> Batch:
    entry = checkpoint.offsets.get(batch)
    metadata = entry.metadata if entry else None
    if planned and committed:
        status = Status.COMMITTED
    elif committed:
        status = Status.OFFSET_PURGED
    elif batch == checkpoint.latest_batch:
        status = Status.IN_FLIGHT
    else:
        status = Status.UNCOMMITTED_GAP
    return Batch(
        batch,
        status,
        metadata.batch_timestamp_ms if metadata else None,
        metadata.batch_watermark_ms if metadata else None,
        checkpoint.sources_of(batch),
    )
