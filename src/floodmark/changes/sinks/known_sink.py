"""Finds what is known about the sink: which batches it has, and of which query.

Delta writes (query id, batch) into its log, Iceberg into its snapshots, and the file sink only
the batch into `_spark_metadata`. Nothing is known about other sinks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from floodmark.changes.sinks import Sink, sink_of
from floodmark.connectors.delta import sink as delta_sink
from floodmark.connectors.files import sink as file_sink
from floodmark.connectors.iceberg import sink as iceberg_sink
from floodmark.connectors.sink_memory import (
    DELTA_SINK,
    FILE_SINK,
    ICEBERG_SINK,
    forgets,
    goes_by_number,
    goes_by_query,
)
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files


@dataclass(frozen=True)
class KnownSink:
    kind: str | None = None
    """`delta`, `iceberg`, `files`, the notes' kind, or None."""
    place: str | None = None
    files: Files | None = None
    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest batch by query id, for Delta and Iceberg; by an empty id for the file sink."""
    named: bool = False
    """True where the user has named the location, so that its log may be changed."""
    complete: bool = False
    """True in complete mode, where each batch emits the whole result."""
    log_is_read: bool = False
    """True where `newest` is from the sink's own log; else it is unknown what the sink has."""

    @property
    def by_query(self) -> bool:
        """Whether the sink remembers (query id, batch)."""
        return goes_by_query(self.kind)

    @property
    def by_number(self) -> bool:
        """Whether the sink remembers only the batch number, and its log was read."""
        return self.kind == FILE_SINK

    @property
    def replaces(self) -> bool:
        """Whether each batch replaces the whole output, so that nothing is stored twice. Other
        sinks in complete mode are unknown: foreachBatch may append, and Kafka does.
        """
        return self.complete and self.by_query

    @property
    def sink(self) -> Sink | None:
        """Return the sink as `consequences` describes it."""
        if self.kind is None:
            return None
        return Sink("parquet" if self.by_number else self.kind, self.place)

    def may_have(self, query_id: str | None, batch: int) -> bool:
        if not self.log_is_read:
            return True
        if self.by_number:
            return self.newest.get("", -1) >= batch
        return query_id is None or self.newest.get(query_id, -1) >= batch

    def newest_of(self, query_id: str | None) -> int | None:
        """Return the query's newest batch in the sink's own log; None: the sink cannot be asked."""
        if not self.log_is_read:
            return None
        if self.by_number:
            return self.newest.get("", -1)
        if forgets(self.kind):
            return self.newest.get(query_id or "")
        return None if query_id is None else self.newest.get(query_id, -1)

    def id_of(self, batch: int | None) -> str | None:
        """Return the query that wrote the last batches, if only one is possible."""
        if not self.by_query or batch is None:
            return None
        near = [name for name, newest in self.newest.items() if newest in (batch - 1, batch)]
        return near[0] if len(near) == 1 else None


def known_sink(
    note: Mapping[str, Any] | None, given: tuple[str, Files] | None, opened: Any
) -> KnownSink:
    """Read the sink's log; `given` is the user's location, else the last start's notes name it."""
    noted = sink_of(note)
    complete = str((note or {}).get("output_mode")).lower() == "complete"
    remembers = noted is not None and (goes_by_query(noted.kind) or goes_by_number(noted.kind))
    named = given is not None
    try:
        if given is None and remembers and noted is not None and noted.path is not None:
            given = (noted.path, opened(noted.path))
    except FloodmarkError:
        given = None
    if given is None:
        return KnownSink(noted.kind if noted else None, complete=complete)
    place, files = given
    try:
        by_query = delta_sink.remembered(files)
        if by_query is not None:
            return KnownSink(DELTA_SINK, place, files, by_query, named, complete, True)
        by_snapshot = iceberg_sink.remembered(files)
        if by_snapshot is not None:
            return KnownSink(ICEBERG_SINK, place, files, by_snapshot, named, complete, True)
        by_number = file_sink.remembered(files)
    except FloodmarkError:
        return KnownSink(noted.kind if noted else None, complete=complete)
    if by_number is not None:
        return KnownSink(FILE_SINK, place, files, by_number, named, log_is_read=True)
    return KnownSink(noted.kind if noted else None, place, files, {}, named, complete)
