"""The last resort: back to the newest batch whose entries and state are whole.

The batches after it are read again. Where a sink may have them, the query gets a new id and the
file sink's log is taken back: else the sink would skip the batches, and their state would never
be computed again.
"""

from __future__ import annotations

from floodmark.changes.carry.going_back import later_batches, later_starts, later_state
from floodmark.changes.repair.patient import Patient
from floodmark.changes.repair.state_files import sink_may_have, unfinished_and_damaged
from floodmark.changes.repair.telling_the_sink import new_number_space
from floodmark.checkpoint.derived import stand_in
from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.rules.mend import Mend
from floodmark.storage.starts import start_batches


def fall_back(patient: Patient) -> bool:
    blocked = patient.found(Mend.GO_BACK, errors=True) or unfinished_and_damaged(patient)
    if not blocked:
        return False
    batch = patient.evidence.way_back
    return batch is not None and go_back(patient, batch)


def go_back(patient: Patient, batch: int, same_range: bool = True) -> bool:
    """Back to the end of a batch. The next one keeps its entry, and so its range, if that can
    be read and `same_range`.
    """
    checkpoint = patient.checkpoint
    later = sorted(n for n in {*checkpoint.offset_ids, *checkpoint.commit_ids} if n > batch)
    spent = [number for number in later if sink_may_have(patient, number)]
    if spent and not new_number_space(patient, batch + 1, spent):
        return False
    _remove_later(patient, batch, same_range)
    _entry_before(patient, batch)
    return True


def _remove_later(patient: Patient, batch: int, same_range: bool) -> None:
    checkpoint, evidence = patient.checkpoint, patient.evidence
    why = f"back to the end of batch {batch}, the newest that is whole"
    again = batch + 1 if same_range and batch + 1 in checkpoint.offsets else None
    if again is not None and f"{OFFSETS}/{again}" in evidence.faults:
        again = None
    for path, reason in (
        *later_batches(checkpoint, batch, why, again),
        *later_state(checkpoint, batch, evidence.unusable),
        *later_starts(start_batches(patient.files), batch),
    ):
        patient.remove(path, reason)
    patient.note(f"The stream goes on with batch {batch + 1}.")


def _entry_before(patient: Patient, batch: int) -> None:
    before = batch - 1
    if before < 0 or before in patient.checkpoint.offsets:
        return
    data = stand_in(patient.checkpoint, before)
    if data is not None:
        why = f"Spark opens the entry before offsets/{batch}, and uses nothing of it"
        patient.write(f"{OFFSETS}/{before}", data, why)
        for number in patient.checkpoint.commit_ids:
            if number <= before:
                patient.remove(f"{COMMITS}/{number}", f"the entry of batch {before} is lost")
        for number in patient.checkpoint.offset_ids:
            if number < before:
                patient.remove(f"{OFFSETS}/{number}", f"the entry of batch {before} is lost")
