"""The state that a batch's successor starts from, read for a plan: it is whole, or this raises."""

from __future__ import annotations

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.state_chain import StateIndex, StoreChain
from floodmark.errors import MalformedFile, StateFileMissing, StatePurged
from floodmark.statestore.manifests import Read, StoredManifests


def needed_state(checkpoint: Checkpoint, batch: int, read: Read) -> tuple[StoreChain, ...]:
    """Every store at the version that batch + 1 starts from; raises where one is incomplete."""
    manifests = StoredManifests(read)
    index = StateIndex(checkpoint, lineage=manifests.lineage)
    return index.required(batch + 1, manifests.tables)


def whole_in_flight(checkpoint: Checkpoint, in_flight: int | None, read: Read) -> int | None:
    """The batch in flight, where all of its state was written before it was stopped.

    A sink that has the batch does not compute it again: then its state must be there.
    """
    if in_flight is None:
        return None
    try:
        needed_state(checkpoint, in_flight, read)
    except (StateFileMissing, StatePurged, MalformedFile):
        return None
    return in_flight


def computed_again(in_flight: int | None) -> tuple[str, ...]:
    """With unique ids a batch that is not committed has none that anybody knows."""
    if in_flight is None:
        return ()
    return (
        f"Batch {in_flight} has to be computed again: with unique ids Spark takes no state that "
        "a commit does not name. A sink that has the batch and skips it stops the query, on the "
        "old checkpoint as well; write over it there, or let the old code finish the batch first.",
    )
