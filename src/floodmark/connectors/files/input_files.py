"""Finds which input files each batch read, from the file source's own log.

Log ids are not batch ids: a batch reads the files of the log entries after the offset of the batch
before it, up to its own offset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.files.file_log import SourceFile
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.registry import about
from floodmark.screen import ShownInALine


class Taken(str, Enum):
    BY_BATCH = "batch"
    EARLIER = "earlier"
    """Read by a batch whose entry, or the entry before it, is no longer in the offset log."""
    WAITING = "waiting"
    """Seen by the source, but not planned yet: the next batch reads it."""


@dataclass(frozen=True, repr=False)
class InputFile(ShownInALine):
    """A file that a file source has seen, and the batch that took it."""

    source: str
    """The source that read it."""
    taken: Taken
    """`batch`: that batch read it. `earlier`: a batch that is no longer logged read it. `waiting`:
    the next batch reads it."""
    batch: int | None
    """The batch that read it; null if that is not known yet, or no longer known."""
    path: str
    """The input file."""
    timestamp_ms: int
    """When the file was last changed, as the source saw it."""
    log_id: int
    """The entry of the source's log that names it. This is not a batch id."""


def file_sources(checkpoint: Checkpoint) -> tuple[str, ...]:
    return tuple(source.id for source in checkpoint.sources if about(source).lists_files)


def input_files(
    checkpoint: Checkpoint, seen: Mapping[str, tuple[SourceFile, ...]]
) -> tuple[InputFile, ...]:
    """Return every file that each source has seen (`seen`), with the batch that read it."""
    return tuple(
        file for source, files in seen.items() for file in _of_source(checkpoint, source, files)
    )


def _of_source(
    checkpoint: Checkpoint, source: str, files: tuple[SourceFile, ...]
) -> list[InputFile]:
    ends = _ends(checkpoint, source)
    last_ids = [end for _, end in ends]
    taken = []
    for file in files:
        at = bisect_left(last_ids, file.batch_id)
        batch: int | None = ends[at][0] if at < len(ends) else None
        if batch is None:
            how = Taken.WAITING
        elif batch != 0 and batch - 1 not in checkpoint.offsets:
            # An entry says where its batch ends; the entry before it says where it began.
            how, batch = Taken.EARLIER, None
        else:
            how = Taken.BY_BATCH
        taken.append(
            InputFile(source, how, batch, file.readable_path, file.timestamp, file.batch_id)
        )
    return taken


def _ends(checkpoint: Checkpoint, source: str) -> list[tuple[int, int]]:
    """Return (batch, the last log id it read), oldest first; a batch without new files adds
    none.
    """
    ends = []
    for batch in sorted(checkpoint.offsets):
        found = next((item for item in checkpoint.sources_of(batch) if item.id == source), None)
        if found is not None and found.offset is not None:
            ends.append((batch, parse_log_offset(found.offset)))
    return ends
