"""Describes one look at a checkpoint for `watch`: batches, pulse, lag, restart. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.restart import restart
from floodmark.checkpoint.timeline import Status
from floodmark.connectors.behind import Lag
from floodmark.connectors.registry import about
from floodmark.errors import FloodmarkError
from floodmark.fleet.batch_bars import BatchBar, batch_bars
from floodmark.fleet.progress_lines import ProgressLine
from floodmark.fleet.pulse import Pulse, pulse
from floodmark.screen import ShownByFields

LAST = 60
"""The number of batches in one look."""


@dataclass(frozen=True, repr=False)
class Sighting(ShownByFields):
    """One look at a stream, as `watch` gives it."""

    path: str
    """The location of the checkpoint."""
    time_ms: int
    """The time of the look."""
    query_id: str | None = None
    """The id by which sinks know the query."""
    latest_batch: int | None = None
    """The highest batch in offsets/."""
    committed_batch: int | None = None
    """The highest batch in commits/."""
    in_flight_batch: int | None = None
    """The batch that is planned and not committed."""
    in_flight_since_ms: int | None = None
    """The time when the batch in flight was planned."""
    pulse: Pulse | None = None
    """Whether batches are committed as often as usual."""
    batches: tuple[BatchBar, ...] = ()
    """The newest batches, oldest first."""
    records: tuple[int | None, ...] = ()
    """The records that each batch read, from a progress line or its offsets; None: unknown."""
    watermark_ms: int | None = None
    """The watermark that the next batch starts with."""
    state_bytes: int | None = None
    """The size of the state."""
    bytes: int | None = None
    """The size of the checkpoint."""
    restart: str = ""
    """Spark's behaviour if the query starts now."""
    lag: Lag | None = None
    """The lag of the stream behind its sources; null where they are not asked."""
    problem: str | None = None
    """The reason why the checkpoint cannot be read now; then nothing else is known."""


def sighting(
    checkpoint: Checkpoint,
    progress: Mapping[int, ProgressLine],
    lag: Lag | None,
    now_ms: int,
) -> Sighting:
    bars = batch_bars(checkpoint, progress, LAST)
    flying = next((one for one in bars if one.status is Status.IN_FLIGHT), None)
    since = flying.planned_ms if flying else None
    commits = [one.committed_ms for one in bars if one.committed_ms is not None]
    waiting = None
    if lag is not None and len(lag.sources) == 1:
        waiting = lag.sources[0].behind.records
    known = checkpoint.complete
    judged = pulse(sorted(commits), now_ms, since, waiting)
    committed = checkpoint.committed_batch
    if not commits and since is None and committed is not None:
        words = f"When batch {committed} was committed is not known, as in a copy of a checkpoint."
        judged = replace(judged, words=words)
    return Sighting(
        checkpoint.path,
        now_ms,
        checkpoint.query_id,
        checkpoint.latest_batch,
        checkpoint.committed_batch,
        checkpoint.in_flight_batch,
        since,
        judged,
        bars,
        _records(checkpoint, bars),
        checkpoint.watermark_ms or None,
        sum(one.bytes for one in checkpoint.state_operators) if known else None,
        checkpoint.bytes if known else None,
        restart(checkpoint).words,
        lag,
    )


def _records(checkpoint: Checkpoint, bars: tuple[BatchBar, ...]) -> tuple[int | None, ...]:
    counted = {
        after: _between(checkpoint, before, after)
        for before, after in pairwise(sorted(checkpoint.offsets))
        if after == before + 1
    }
    return tuple(one.rows if one.rows is not None else counted.get(one.batch) for one in bars)


def _between(checkpoint: Checkpoint, before: int, after: int) -> int | None:
    """Count the records that a batch reads, if the offsets of all its sources count records."""
    starts = {one.id: one for one in checkpoint.sources_of(before)}
    found = 0
    for source in checkpoint.sources_of(after):
        kind, start = about(source), starts.get(source.id)
        if not kind.has_topics or start is None:
            return None
        try:
            number = kind.count(start.offset, source.offset)
        except FloodmarkError:
            return None
        if number is None or number < 0:
            return None
        found += number
    return found
