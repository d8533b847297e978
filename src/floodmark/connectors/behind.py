"""Describes how far a stream is behind its sources, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from floodmark.screen import ShownByFields, ShownInALine


@dataclass(frozen=True, repr=False)
class Behind(ShownInALine):
    """What the stream has not read yet. None: not known; a note of the source says why."""

    records: int | None = None
    """The number of records."""
    bytes: int | None = None
    """The number of bytes."""
    ms: int | None = None
    """The age of the oldest unread record or file; 0 if there is none."""
    versions: int | None = None
    """The number of commits or snapshots of a table."""
    files: int | None = None
    """The number of files."""
    bytes_estimated: bool = False
    """Whether `bytes` is estimated from some records; a note of the source says from how many."""


NOTHING = Behind(0, 0, 0)


@dataclass(frozen=True, repr=False)
class PartLag(ShownInALine):
    """One part of a source: a partition, a table, a folder."""

    part: str
    """Its name: a topic and partition, a table, a folder."""
    position: Any
    """What the stream reads next; None if that is not known."""
    end: Any
    """What would be written next; None if the source no longer has this part."""
    earliest: Any
    """The oldest position that still exists."""
    records: int | None = None
    """The number of unread records."""
    ms: int | None = None
    """The age of the oldest unread record."""
    retention_left_ms: int | None = None
    """How long retention keeps the unread records at least; 0: it may remove them at any time."""
    lost: int | None = None
    """How much of the unread part is gone already."""
    bytes: int | None = None
    """The number of unread bytes."""


@dataclass(frozen=True, repr=False)
class SourceLag(ShownByFields):
    id: str
    """Its number in the plan, or its name."""
    kind: str
    """kafka, delta, file, and so on."""
    behind: Behind = field(default_factory=Behind)
    """What the stream has not read yet, in all parts together."""
    parts: tuple[PartLag, ...] = ()
    """The same for each partition, table or folder."""
    retention_left_ms: int | None = None
    """The smallest value of all parts."""
    lost: int | None = None
    """How much of the unread part is gone already: records, or versions of a table; null if that
    is not known."""
    place: str | None = None
    """The brokers, the table or the folder that was asked."""
    notes: tuple[str, ...] = ()
    """What is not known or not counted, with the reason."""
    error: str | None = None
    """Why it was not asked, or which error it gave."""


@dataclass(frozen=True, repr=False)
class GroupCommit(ShownInALine):
    """Offsets that were written into a Kafka consumer group."""

    group: str
    """The consumer group."""
    place: str
    """The brokers."""
    offsets: dict[str, dict[str, int]]
    """Topic → partition → the next offset to read."""
    time_ms: int
    """When it was written."""


@dataclass(frozen=True, repr=False)
class Lag(ShownByFields):
    """How far a stream is behind its sources."""

    path: str
    """The checkpoint."""
    batch: int | None
    """The last finished batch: lag is counted from its end."""
    in_flight_batch: int | None
    """The batch that is planned and not committed: Spark runs it again."""
    time_ms: int
    """When the sources were asked."""
    sources: tuple[SourceLag, ...]
    """Each source of the query."""
    committed_group: GroupCommit | None = None
    """What was written into a consumer group; null unless `--commit-to-group` was given."""

    @property
    def complete(self) -> bool:
        """Whether every source that can be asked has answered."""
        return all(source.error is None for source in self.sources)


def total(values: Iterable[int | None]) -> int | None:
    """Return the sum; None if one of the values is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def longest(values: Iterable[int | None]) -> int | None:
    """Return the largest value; None if one of the values is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return max(known, default=0) if len(known) == len(found) else None


def soonest(values: Iterable[int | None]) -> int | None:
    """Return the smallest of the known values."""
    return min((value for value in values if value is not None), default=None)
