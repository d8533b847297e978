"""Shows how far a stream is behind its sources, on a card and on a page."""

from __future__ import annotations

from dataclasses import replace

from floodmark.connectors.behind import Lag, SourceLag, longest, soonest, total
from floodmark.fleet.card import CardLag
from floodmark.fleet.retention import Overtaking, PartSample

_MOST_PARTS = 256
_LARGEST = 1 << 63


def card_lag(lag: Lag, overtaken: Overtaking | None = None) -> CardLag:
    """Sum up all sources; the sum is unknown if one source's lag is."""
    if not lag.sources:
        return CardLag(problem="The stream has no source.")
    errors = [source.error for source in lag.sources if source.error]
    left = soonest(source.retention_left_ms for source in lag.sources)
    return CardLag(
        total(source.behind.records for source in lag.sources),
        total(source.behind.bytes for source in lag.sources),
        longest(source.behind.ms for source in lag.sources),
        left if overtaken is None or overtaken.ms is None else overtaken.ms,
        errors[0] if errors else None,
        any(source.behind.bytes_estimated for source in lag.sources),
    )


def part_samples(lag: Lag) -> tuple[PartSample, ...]:
    """Return samples for the history, for parts whose position is a number."""
    found = (
        PartSample(
            lag.time_ms,
            source.id,
            part.part,
            part.position,
            _whole(part.end),
            _whole(part.earliest),
        )
        for source in lag.sources
        for part in source.parts[:_MOST_PARTS]
        if _whole(part.position) is not None
    )
    return tuple(found)


def shown_lag(lag: Lag) -> Lag:
    """Limit a lag to the partitions that a page shows."""
    return replace(lag, sources=tuple(_shown(source) for source in lag.sources))


def _shown(source: SourceLag) -> SourceLag:
    left_out = len(source.parts) - _MOST_PARTS
    if left_out <= 0:
        return source
    note = f"{left_out:,} more partitions are counted and not shown."
    return replace(source, parts=source.parts[:_MOST_PARTS], notes=(*source.notes, note))


def _whole(value: object) -> int | None:
    """Return a number that Kafka can have; a checkpoint may contain any number."""
    return value if type(value) is int and abs(value) < _LARGEST else None
