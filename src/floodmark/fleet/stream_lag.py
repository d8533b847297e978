"""How far behind its sources a stream is, by source and partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from floodmark.fleet.card import CardLag
from floodmark.fleet.retention import Overtaking, PartSample

_MOST_PARTS = 256


@dataclass(frozen=True)
class StreamPart:
    part: str
    position: int | None
    end: int | None
    earliest: int | None


@dataclass(frozen=True)
class StreamSourceLag:
    id: str
    kind: str
    records: int | None
    bytes: int | None
    ms: int | None
    parts: tuple[StreamPart, ...] = ()
    problem: str | None = None
    """Why the source does not tell, in words."""


@dataclass(frozen=True)
class StreamLag:
    at_ms: int
    sources: tuple[StreamSourceLag, ...]
    problem: str | None = None


def card_lag(lag: StreamLag, overtaken: Overtaking | None = None) -> CardLag:
    """All sources together; a source that does not tell makes the sum unknown."""
    problems = [one.problem for one in lag.sources if one.problem]
    times = [one.ms for one in lag.sources if one.ms is not None]
    return CardLag(
        _sum(one.records for one in lag.sources),
        _sum(one.bytes for one in lag.sources),
        max(times, default=None),
        overtaken.ms if overtaken else None,
        lag.problem or (problems[0] if problems else None),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return sum(one for one in known if one is not None) if known and None not in known else None


def part_samples(lag: StreamLag) -> tuple[PartSample, ...]:
    found = (
        PartSample(lag.at_ms, source.id, part.part, part.position, part.end, part.earliest)
        for source in lag.sources
        for part in source.parts[:_MOST_PARTS]
        if part.position is not None
    )
    return tuple(found)
