"""Goes back to the newest batch whose entries and state are whole: the last resort.

The batches after it run again. If a sink may have stored them, the query gets a new id and the
file sink's log goes back too. Otherwise the sink would skip the batches, and their state would
never be computed.
"""

from __future__ import annotations

from floodmark.changes.carry.going_back import later_batches, later_starts, later_state
from floodmark.changes.repair.batch_numbers import use_numbers_again
from floodmark.changes.repair.state_files import sink_may_have, unfinished_and_damaged
from floodmark.changes.repair.working_copy import WorkingCopy
from floodmark.checkpoint.derived_entries import stand_in
from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.rules.mend import Mend
from floodmark.storage.last_start import start_batches


def fall_back(work: WorkingCopy) -> bool:
    blocked = work.found(Mend.GO_BACK, errors=True) or unfinished_and_damaged(work)
    if not blocked:
        return False
    batch = work.evidence.way_back
    return batch is not None and go_back(work, batch)


def go_back(work: WorkingCopy, batch: int, same_range: bool = True) -> bool:
    """Go back to the end of a batch. The next batch keeps its entry, and so its range, if that
    can be read and `same_range` is set.
    """
    checkpoint = work.checkpoint
    later = sorted(n for n in {*checkpoint.offset_ids, *checkpoint.commit_ids} if n > batch)
    spent = [number for number in later if sink_may_have(work, number)]
    if spent and not use_numbers_again(work, batch + 1, spent):
        return False
    _remove_later(work, batch, same_range)
    _entry_before(work, batch)
    return True


def _remove_later(work: WorkingCopy, batch: int, same_range: bool) -> None:
    checkpoint, evidence = work.checkpoint, work.evidence
    why = f"back to the end of batch {batch}, the newest that is whole"
    again = batch + 1 if same_range and batch + 1 in checkpoint.offsets else None
    if again is not None and f"{OFFSETS}/{again}" in evidence.faults:
        again = None
    for path, reason in (
        *later_batches(checkpoint, batch, why, again),
        *later_state(checkpoint, batch, evidence.unusable),
        *later_starts(start_batches(work.files), batch),
    ):
        work.remove(path, reason)
    work.note(f"The stream goes on with batch {batch + 1}.")


def _entry_before(work: WorkingCopy, batch: int) -> None:
    before = batch - 1
    if before < 0 or before in work.checkpoint.offsets:
        return
    data = stand_in(work.checkpoint, before)
    if data is not None:
        why = f"Spark opens the entry before offsets/{batch}, and uses nothing of it"
        work.write(f"{OFFSETS}/{before}", data, why)
        for number in work.checkpoint.commit_ids:
            if number <= before:
                work.remove(f"{COMMITS}/{number}", f"the entry of batch {before} is lost")
        for number in work.checkpoint.offset_ids:
            if number < before:
                work.remove(f"{OFFSETS}/{number}", f"the entry of batch {before} is lost")
