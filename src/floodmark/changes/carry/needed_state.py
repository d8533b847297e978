"""Reads the state from which the next batch starts; raises an error if it is incomplete."""

from __future__ import annotations

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.state_chain import StateIndex, StoreChain
from floodmark.errors import MalformedFile, StateFileMissing, StatePurged
from floodmark.statestore.manifests import Read, StoredManifests


def needed_state(checkpoint: Checkpoint, batch: int, read: Read) -> tuple[StoreChain, ...]:
    """Return every store at the version from which batch + 1 starts; raise if one is incomplete."""
    manifests = StoredManifests(read)
    index = StateIndex(checkpoint, lineage=manifests.lineage)
    return index.required(batch + 1, manifests.tables)


def whole_in_flight(checkpoint: Checkpoint, in_flight: int | None, read: Read) -> int | None:
    """Return the batch in flight, if all of its state was written before it stopped.

    A sink that already has the batch does not compute it again, so its state must be there.
    """
    if in_flight is None:
        return None
    try:
        needed_state(checkpoint, in_flight, read)
    except (StateFileMissing, StatePurged, MalformedFile):
        return None
    return in_flight


def computed_again(in_flight: int | None) -> tuple[str, ...]:
    """Return a note: with unique ids, nothing names the state of a batch that is not committed."""
    if in_flight is None:
        return ()
    return (
        f"Batch {in_flight} has to be computed again: with unique ids Spark uses only state that "
        "a commit names. A sink that already has the batch skips it, and the query stops, as it "
        "would on the "
        "old checkpoint. Overwrite the batch there, or let the old code finish it first.",
    )
