"""What can be known of the sink: which batches it has, and of which query.

Delta writes (query id, batch) into its log, Iceberg into its snapshots, the file sink the batch
alone into `_spark_metadata`. Of every other sink nothing can be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from floodmark.changes.consequences import Sink, sink_of
from floodmark.connectors.delta import sink as delta_sink
from floodmark.connectors.files import sink as file_sink
from floodmark.connectors.iceberg import sink as iceberg_sink
from floodmark.connectors.sinks import (
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
    """`delta`, `iceberg`, `files`, what the notes say, or None."""
    place: str | None = None
    files: Files | None = None
    newest: Mapping[str, int] = field(default_factory=dict)
    """Delta and Iceberg: query id → the newest batch. The file sink: `` → the newest batch."""
    named: bool = False
    """The user has named the place, so its log may be changed; else the notes tell of it."""
    complete: bool = False
    """The query's output mode: each batch emits the whole result."""
    log_is_read: bool = False
    """`newest` is what the sink's own log says; else nobody knows what it has."""

    @property
    def by_query(self) -> bool:
        """It remembers (query id, batch)."""
        return goes_by_query(self.kind)

    @property
    def by_number(self) -> bool:
        """It remembers the batch number alone, and its log was read."""
        return self.kind == FILE_SINK

    @property
    def replaces(self) -> bool:
        """Each batch replaces the whole output, so none is ever there twice. Of other sinks in
        complete mode nobody knows: foreachBatch may append, and Kafka does.
        """
        return self.complete and self.by_query

    @property
    def sink(self) -> Sink | None:
        """In the words that the consequences of every change go by."""
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
        """The newest batch that the sink's own log has of the query; None: it cannot be asked."""
        if not self.log_is_read:
            return None
        if self.by_number:
            return self.newest.get("", -1)
        if forgets(self.kind):
            return self.newest.get(query_id or "")
        return None if query_id is None else self.newest.get(query_id, -1)

    def id_of(self, batch: int | None) -> str | None:
        """The query that wrote the last batches, where only one can have."""
        if not self.by_query or batch is None:
            return None
        near = [name for name, newest in self.newest.items() if newest in (batch - 1, batch)]
        return near[0] if len(near) == 1 else None


def known_sink(
    note: Mapping[str, Any] | None, given: tuple[str, Files] | None, opened: Any
) -> KnownSink:
    """`given`: the place that the user named; else the notes of the last start tell."""
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
