"""Describes a query that is about to start, and the checkpoint from which it goes on."""

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
    """The checkpoint's URL with its scheme, as Spark resolves it."""
    files: WritableFiles
    saved: Saved
    query: Query
    writer: Any = None
    fingerprint: str | None = None
    """The digest of the file that the code comes from."""
    file: str | None = None
    """The path of that file, for commands that the user can paste."""

    @property
    def sources(self) -> Iterator[tuple[str, Source]]:
        """Yield the query's sources, each with its id in the checkpoint."""
        checkpoint = self.saved.checkpoint
        latest = None if checkpoint is None else checkpoint.offset_log_version
        for index, source in enumerate(self.query.sources):
            yield (source.name or str(index)) if latest == 2 else str(index), source
