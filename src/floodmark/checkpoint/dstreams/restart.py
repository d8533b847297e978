"""Says in words what Spark does when a DStreams application restarts from its folder. Pure."""

from __future__ import annotations

from floodmark.checkpoint.dstreams.batches import newest_state
from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint


def restart_words(found: DStreamsCheckpoint, now_ms: int) -> str:
    if found.restart_file is None:
        return (
            "No checkpoint file can be read. getOrCreate fails here, or begins with an empty state."
        )
    if found.spark is not None and found.spark.restart_file is None:
        return (
            f"Spark {found.spark.version} cannot load any of these files with the classes that it "
            "was given. getOrCreate fails here."
        )
    pending = found.pending_times or ()
    words = "If it restarts now, Spark loads " + found.restart_file
    if pending:
        noun = "batch" if len(pending) == 1 else "batches"
        words += f", runs {len(pending)} pending {noun} again"
    words += f" and then {_since(found, now_ms)}. It runs the code that is saved there, not newer "
    words += "code."
    without = [at for at in found.state_streams if newest_state(found, at) is None]
    if without:
        words += f" The state of stream {without[0]} is not in this folder."
    return words


def _since(found: DStreamsCheckpoint, now_ms: int) -> str:
    """Return the batches that Spark makes up for, one by one: those of the time without a run."""
    newest = max(found.checkpoint_time_ms or 0, *(found.pending_times or (0,)))
    elapsed = now_ms - newest
    missed = elapsed // found.batch_ms if found.batch_ms and found.batch_ms > 0 else 0
    return f"the {missed:,} batches since" if missed > 1 else "every batch since"
