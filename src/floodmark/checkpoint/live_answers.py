"""What the real sources and the sink answered about a checkpoint, for the rules to judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Bounds(NamedTuple):
    """What a Kafka cluster has of a partition."""

    earliest: int
    end: int
    """The next offset to be written: records of open transactions lie before it."""
    stable: int | None = None
    """Where the first open transaction begins, else the end; None: nobody asked for it."""

    def readable(self, committed: bool) -> int:
        """Where reading stops now, for a stream that reads committed records alone or all."""
        return self.stable if committed and self.stable is not None else self.end


@dataclass(frozen=True)
class TableLog:
    """A Delta table that is read."""

    place: str
    id: str | None
    first: int
    last: int
    """The versions that its log still holds; -1 for a table without a log."""
    gone: tuple[str, ...] = ()
    """Data files that the next batch reads and that were vacuumed."""


@dataclass(frozen=True)
class SnapshotLine:
    """An Iceberg table that is read."""

    place: str
    line: tuple[int, ...]
    """Its snapshots, from the current one back by parents, as far as they are there."""
    kept: frozenset[int]
    """Every snapshot that it has, also those that do not lead to the current one."""
    is_whole: bool
    """The line reaches back to the table's first snapshot."""
    began: int | None = None
    """The snapshot that the stream began in."""


@dataclass(frozen=True)
class Timeline:
    """A Hudi table that is read: the oldest and the newest commit that is not archived."""

    place: str
    oldest: str | None
    newest: str | None


@dataclass(frozen=True)
class SinkLog:
    place: str
    """The sink's table or folder."""
    kind: str
    """`delta`, `iceberg` or `files`."""
    newest: int | None
    """The newest batch of this query that it has; None where it has none."""


@dataclass(frozen=True)
class LiveAnswers:
    kafka: Mapping[str, Mapping[str, Mapping[int, Bounds]]] = field(
        default_factory=lambda: _NOTHING
    )
    """Source → topic → partition → bounds."""
    tables: Mapping[str, TableLog] = field(default_factory=lambda: _NOTHING)
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    """Source → input files that the next batch reads and that are gone."""
    silent: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Source → why it was not asked, or what it answered instead."""
    remedies: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Source that is silent → what helps, where the one that asked knows it."""
    sink: SinkLog | None = None
    lines: Mapping[str, SnapshotLine] = field(default_factory=lambda: _NOTHING)
    """Source → the snapshots of its Iceberg table."""
    timelines: Mapping[str, Timeline] = field(default_factory=lambda: _NOTHING)
    """Source → the active timeline of its Hudi table."""


@dataclass(frozen=True)
class SourcePlaces:
    """Where the user says that things are; it goes before the notes."""

    sources: bool = False
    bootstrap_servers: str | None = None
    table: str | None = None
    sink: str | None = None
    input: str | None = None
    """The folder that a file source reads."""

    @property
    def asks_sources(self) -> bool:
        return self.sources or bool(self.bootstrap_servers or self.table)

    @property
    def asks(self) -> bool:
        return self.asks_sources or bool(self.sink)
