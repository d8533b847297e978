"""Repairs `metadata`: finds the query's id in another file."""

from __future__ import annotations

from floodmark.changes.carry.origin import fresh_identity
from floodmark.changes.repair.emitted import risk_repeats
from floodmark.changes.repair.working_copy import WorkingCopy
from floodmark.checkpoint.layout import METADATA
from floodmark.checkpoint.metadata import new_metadata, render_metadata
from floodmark.rules.mend import Mend
from floodmark.storage.last_start import latest_note


def identity(work: WorkingCopy) -> bool:
    if not work.found(Mend.IDENTITY):
        return False
    checkpoint = work.checkpoint
    if not checkpoint.offset_ids and not checkpoint.commit_ids:
        work.remove(METADATA, "no batch is planned yet: Spark makes a new one")
        return True
    query_id, why = _known_id(work)
    if query_id is not None:
        work.write(METADATA, render_metadata(new_metadata(query_id)), why)
        return True
    _say_what_it_means(work)
    why = "a new query id: nothing holds the old one any more"
    work.write(METADATA, fresh_identity(), why)
    return True


def _known_id(work: WorkingCopy) -> tuple[str | None, str]:
    note = latest_note(work.files)
    if note and isinstance(note.get("query_id"), str):
        return note["query_id"], "the query's id, from the notes of its last start"
    checkpoint = work.checkpoint
    numbers = [n for n in (checkpoint.latest_batch, checkpoint.committed_batch) if n is not None]
    found = work.sink.id_of(max(numbers, default=None))
    return found, f"the query's id, from the transactions of {work.sink.place}"


def _say_what_it_means(work: WorkingCopy) -> None:
    in_flight = work.checkpoint.in_flight_batch
    if in_flight is None:
        work.note("No batch is in flight: a sink that remembers ids goes on with the new one.")
        return
    if work.sink.replaces or work.sink.by_number:
        return  # the one replaces all it has, the other knows batches by number alone
    risk_repeats(
        work,
        f"Batch {in_flight} is run again under a new query id",
        "a sink that has it under the old one takes its records a second time.",
        in_flight - 1,
        [in_flight],
    )
