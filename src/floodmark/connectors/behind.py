"""How far a stream is behind its sources, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from floodmark.screen import fields_html, fields_text, line_text


@dataclass(frozen=True)
class Behind:
    """What the stream has not read yet; None: not known, and a note of the source says why."""

    records: int | None = None
    """How many records."""
    bytes: int | None = None
    """How many bytes."""
    ms: int | None = None
    """The age of the oldest of it; 0 where there is none."""
    versions: int | None = None
    """Of a table: commits or snapshots."""
    files: int | None = None
    """How many files."""
    bytes_estimated: bool = False
    """`bytes` is worked out from some of the records; a note of the source says from how many."""

    __repr__ = line_text
    _repr_html_ = fields_html


NOTHING = Behind(0, 0, 0)


@dataclass(frozen=True)
class PartLag:
    """One part of a source: a partition, a table, a folder."""

    part: str
    """Its name: a topic and partition, a table, a folder."""
    position: Any
    """What the stream reads next; None: nothing says so."""
    end: Any
    """What would be written next; None: the source no longer has this part."""
    earliest: Any
    """The oldest that is still there."""
    records: int | None = None
    """How many records are not read yet."""
    ms: int | None = None
    """The age of the oldest record that is not read yet."""
    retention_left_ms: int | None = None
    """At least this long retention leaves what is not read; 0: it may remove it at any time."""
    lost: int | None = None
    """How much of what is not read is gone already."""
    bytes: int | None = None
    """How many bytes are not read yet."""

    __repr__ = line_text
    _repr_html_ = fields_html


@dataclass(frozen=True)
class SourceLag:
    id: str
    """Its number in the plan, or its name."""
    kind: str
    """kafka, delta, file, and so on."""
    behind: Behind = field(default_factory=Behind)
    """What the stream has not read yet, of all parts together."""
    parts: tuple[PartLag, ...] = ()
    """The same for each partition, table or folder."""
    retention_left_ms: int | None = None
    """Of the part that retention reaches first."""
    lost: int | None = None
    """How much of what is not read is gone already: records, or versions of a table; null where
    that is not known."""
    place: str | None = None
    """Where it was asked: brokers, a table, a folder."""
    notes: tuple[str, ...] = ()
    """What is not known or not counted, and why."""
    error: str | None = None
    """Why it was not asked, or what it answered instead."""

    __repr__ = fields_text
    _repr_html_ = fields_html


@dataclass(frozen=True)
class GroupCommit:
    """Offsets that were written into a Kafka consumer group."""

    group: str
    """The consumer group."""
    place: str
    """The brokers."""
    offsets: dict[str, dict[str, int]]
    """Topic → partition → the next offset to read."""
    time_ms: int
    """When it was written."""

    __repr__ = line_text
    _repr_html_ = fields_html


@dataclass(frozen=True)
class Lag:
    path: str
    """The checkpoint."""
    batch: int | None
    """The last finished one: lag is counted from its end."""
    in_flight_batch: int | None
    """Planned and not committed: Spark runs it again."""
    time_ms: int
    """When the sources were asked."""
    sources: tuple[SourceLag, ...]
    """Each source of the query."""
    committed_group: GroupCommit | None = None
    """What was written into a consumer group; null unless `--commit-to-group` was given."""

    __repr__ = fields_text
    _repr_html_ = fields_html

    @property
    def complete(self) -> bool:
        """Every source that can be asked has answered."""
        return all(source.error is None for source in self.sources)


def total(values: Iterable[int | None]) -> int | None:
    """The sum; None where one of them is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def longest(values: Iterable[int | None]) -> int | None:
    """The largest; None where one of them is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return max(known, default=0) if len(known) == len(found) else None


def soonest(values: Iterable[int | None]) -> int | None:
    """The smallest of those that are known."""
    return min((value for value in values if value is not None), default=None)
