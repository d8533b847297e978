"""A query that is about to start, with the checkpoint that it goes on from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from floodmark.engine.code.query import Query, Source
from floodmark.engine.start.saved import Saved
from floodmark.storage.files import WritableFiles


@dataclass(frozen=True)
class QueryToStart:
    spark: Any
    pipeline: str
    location: str
    """The checkpoint with its scheme, as Spark resolves it."""
    files: WritableFiles
    saved: Saved
    query: Query
    writer: Any = None
    fingerprint: str | None = None
    """Of the file that the code comes from."""
    file: str | None = None
    """That file, for commands that can be pasted."""

    @property
    def sources(self) -> Iterator[tuple[str, Source]]:
        """The query's sources, each with the id that the checkpoint knows it by."""
        checkpoint = self.saved.checkpoint
        latest = None if checkpoint is None else checkpoint.offset_log_version
        for index, source in enumerate(self.query.sources):
            yield (source.name or str(index)) if latest == 2 else str(index), source
