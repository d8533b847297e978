"""Holds what the real sources and the sink answered about a checkpoint, for the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

_Trouble = TypeVar("_Trouble", covariant=True)
_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Bounds(NamedTuple):
    """The offsets that a Kafka cluster has of one partition."""

    earliest: int
    end: int
    """The next offset to be written. Records of open transactions lie before it."""
    stable: int | None = None
    """The start of the first open transaction, else the end; None if nobody asked for it."""

    def readable(self, committed: bool) -> int:
        """Return where reading stops now, for a stream of committed records only or of all."""
        return self.stable if committed and self.stable is not None else self.end


@dataclass(frozen=True)
class TableLog:
    """The log of a Delta table that the query reads."""

    place: str
    id: str | None
    first: int
    last: int
    """The versions that its log still holds; -1 for a table without a log."""
    gone: tuple[str, ...] = ()
    """Vacuumed data files that the next batch reads."""


@dataclass(frozen=True)
class SnapshotLine:
    """The snapshots of an Iceberg table that the query reads."""

    place: str
    line: tuple[int, ...]
    """Its snapshots: the current one, its parent and so on, as far as they still exist."""
    kept: frozenset[int]
    """All snapshots of the table, also those that are no ancestors of the current one."""
    is_whole: bool
    """Whether the line reaches back to the table's first snapshot."""
    began: int | None = None
    """The snapshot that the stream began in."""


@dataclass(frozen=True)
class Timeline:
    """The oldest and the newest active commit of a Hudi table that the query reads."""

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
    """The newest batch of this query that it has; None if it has no batch."""


@dataclass(frozen=True)
class LiveAnswers:
    kafka: Mapping[str, Mapping[str, Mapping[int, Bounds]]] = field(
        default_factory=lambda: _NOTHING
    )
    """Source → topic → partition → bounds."""
    tables: Mapping[str, TableLog] = field(default_factory=lambda: _NOTHING)
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    """Source → missing input files that the next batch reads."""
    silent: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Source → why it was not asked, or which error it gave."""
    remedies: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Source in `silent` → what helps, if that is known."""
    sink: SinkLog | None = None
    lines: Mapping[str, SnapshotLine] = field(default_factory=lambda: _NOTHING)
    """Source → the snapshots of its Iceberg table."""
    timelines: Mapping[str, Timeline] = field(default_factory=lambda: _NOTHING)
    """Source → the active timeline of its Hudi table."""


@dataclass(frozen=True)
class SourcePlaces:
    """The locations of sources and sink that the user gives; they go before the notes."""

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


@dataclass(frozen=True)
class Shortfall(Generic[_Trouble]):
    """What a source no longer has of what a stream reads next."""

    trouble: _Trouble
    words: str
