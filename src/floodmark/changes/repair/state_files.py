"""Removes state files that cannot be loaded and that an older snapshot replaces."""

from __future__ import annotations

from floodmark.changes.repair.working_copy import WorkingCopy


def pass_over(work: WorkingCopy) -> bool:
    """Remove damaged files if the next start's state can be rebuilt without them."""
    evidence = work.evidence
    next_batch = evidence.next_batch
    if not evidence.unusable or next_batch is None or not evidence.is_whole(next_batch):
        return False
    if unfinished_and_damaged(work):
        return False
    for path in sorted(evidence.unusable):
        why = (
            "damaged: an older snapshot and all changes since it are there"
            if path in evidence.needed
            else "damaged, and the next start does not need it"
        )
        work.remove(path, why)
    return True


def unfinished_and_damaged(work: WorkingCopy) -> bool:
    """Whether the in-flight batch left a damaged state, and the sink may have the batch.

    A sink that has a batch does not compute it again, so its state would be missing.
    """
    batch = work.checkpoint.in_flight_batch
    if batch is None or not sink_may_have(work, batch):
        return False
    version = batch + 1
    return any(
        file.version == version and file.path in work.evidence.unusable
        for file in work.checkpoint.state_files
    )


def sink_may_have(work: WorkingCopy, batch: int) -> bool:
    """Whether the sink may have a batch: it gets one only after every store wrote its state."""
    checkpoint = work.checkpoint
    if not work.sink.may_have(checkpoint.query_id, batch):
        return False
    if batch in checkpoint.commit_ids or not checkpoint.state_operators:
        return True
    stores = {(file.operator, file.partition, file.store) for file in checkpoint.state_files}
    written = {
        (file.operator, file.partition, file.store)
        for file in checkpoint.state_files
        if file.version == batch + 1
    }
    return written >= stores
