"""Names the files that are removed when a checkpoint goes back to the end of a batch. Pure.

`rewind` and `repair` both go back; this module decides for both what that removes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from floodmark.changes.carry.rehome import is_operator_metadata
from floodmark.checkpoint.layout import COMMITS, OFFSETS, batch_id, state_files
from floodmark.checkpoint.model import Checkpoint

Removed = Iterator[tuple[str, str]]
"""The path of each removed file, and the reason."""
_STATE = "state of batches that are run again"


def later_batches(
    checkpoint: Checkpoint, batch: int, why: str, same_range: int | None = None
) -> Removed:
    """Yield the log entries after the batch; the offsets of `same_range` stay."""
    # Commits go before offsets: stopped halfway, this still looks like a batch to rerun.
    for log, ids in ((COMMITS, checkpoint.commit_ids), (OFFSETS, checkpoint.offset_ids)):
        for number in sorted((number for number in ids if number > batch), reverse=True):
            if log == COMMITS or number != same_range:
                yield f"{log}/{number}", why


def later_state(checkpoint: Checkpoint, batch: int, unusable: Collection[str] = ()) -> Removed:
    """Yield state files that coming batches write again: some stores would not overwrite them.

    `unusable` files are removed whatever their version is.
    """
    for file in state_files(checkpoint.files):
        late = file.version > batch + 1 and file.unique_id is None
        if late or file.path in unusable:
            yield file.path, _STATE
    for path in sorted(file.path for file in checkpoint.files):
        number = batch_id(path.rsplit("/", 1)[-1])
        if is_operator_metadata(path) and number is not None and number > batch:
            yield path, _STATE


def later_starts(starts: Iterable[tuple[str, int]], batch: int) -> Removed:
    """Yield notes of starts whose batches all run again: no state of their code stays."""
    for path, first_batch in starts:
        if first_batch > batch:
            yield path, f"the note of a start after batch {batch}"
