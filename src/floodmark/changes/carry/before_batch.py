"""Shows a checkpoint as it was before a batch: the batch is planned but not begun. Pure."""

from __future__ import annotations

from dataclasses import replace

from floodmark.checkpoint.layout import COMMITS, OFFSETS, STATE, STATE_SCHEMA, FileInfo, batch_id
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.state_chain import StateIndex


def before_batch(checkpoint: Checkpoint, batch: int) -> Checkpoint:
    """Return the checkpoint as if Spark had stopped right after it wrote `offsets/<batch>`."""
    later = {file.path for file in checkpoint.state_files if file.version > batch}
    return replace(
        checkpoint,
        files=tuple(
            file
            for file in checkpoint.files
            if file.path not in later and _is_of_the_past(file, batch)
        ),
        offset_ids=tuple(one for one in checkpoint.offset_ids if one <= batch),
        commit_ids=tuple(one for one in checkpoint.commit_ids if one < batch),
        offsets={one: entry for one, entry in checkpoint.offsets.items() if one <= batch},
        commits={one: entry for one, entry in checkpoint.commits.items() if one < batch},
    )


def _is_of_the_past(file: FileInfo, batch: int) -> bool:
    folder, _, rest = file.path.partition("/")
    if folder in (OFFSETS, COMMITS):
        number = batch_id(rest)
        return number is None or number < batch or (number == batch and folder == OFFSETS)
    if folder != STATE:
        return True
    if batch == 0:
        return False  # the first batch describes its operators itself
    # Files that describe an operator have the number of the batch that first wrote them.
    parts = rest.split("/")
    dated = "v2" in parts[1:-1] or STATE_SCHEMA in parts
    number = batch_id(parts[-1].split("_")[0]) if dated else None
    return number is None or number <= batch


def replayable_batches(checkpoint: Checkpoint) -> tuple[int, ...]:
    """Return the batches that can be replayed, judged by names: offsets and earlier state exist."""
    index = StateIndex(checkpoint)
    logged = set(checkpoint.offset_ids)
    return tuple(
        batch
        for batch in checkpoint.offset_ids
        if (batch == 0 or batch - 1 in logged)
        and not any(chain.lack for chain in index.chains(batch))
    )
