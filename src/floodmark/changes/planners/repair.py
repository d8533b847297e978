"""`repair CP`: for each finding that can be mended the smallest safe mend, and never more.

The gentlest mends come first; after each the doctor looks again, for one trouble is often the
cause of others. What may repeat records, or take damaged content for good, is named in the plan
and has to be accepted by that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from floodmark.changes.consequences import goes_on
from floodmark.changes.fingerprint import Fingerprint
from floodmark.changes.plan import NEEDED, NOT_IN_USE, UNCHANGED, Consequence, Plan, Precondition
from floodmark.changes.repair import (
    descriptions,
    falling_back,
    identity,
    log_entries,
    small_files,
    source_logs,
    state_files,
)
from floodmark.changes.repair.backups import Backup
from floodmark.changes.repair.patient import Patient
from floodmark.changes.steps import RestoreFile, Step, delete, write
from floodmark.checkpoint.layout import COMMITS, OFFSETS, batch_id
from floodmark.rules.mend import Mend
from floodmark.storage.repository import object_path
from floodmark.wire import to_wire

_MENDS: tuple[Callable[[Patient], bool], ...] = (
    small_files.cure,
    identity.identity,
    small_files.tidy,
    small_files.checksums,
    small_files.side_files,
    log_entries.unfinished_repartition,
    log_entries.commits,
    log_entries.entry_before_the_newest,
    source_logs.seen_files,
    source_logs.start_files,
    descriptions.schema_paths,
    descriptions.partition_count,
    descriptions.settings,
    descriptions.torn,
    state_files.pass_over,
    falling_back.fall_back,
)
_MOST_ROUNDS = 4
_TOLD = 20


@dataclass(frozen=True)
class RepairOptions:
    accept: tuple[str, ...] = ()
    sink: str | None = None
    read_data: bool = False
    backup: str | None = None


def mend(patient: Patient, backup: Backup | None = None) -> None:
    """Everything that can be mended, in the overlay."""
    mends: Sequence[Callable[[Patient], bool]] = _MENDS
    if backup is not None:
        mends = (backup.restore, *_MENDS)
    for _ in range(_MOST_ROUNDS):
        done = False
        for each in mends:
            if patient.found(Mend.STATE) and not patient.read_data:
                # Where to go back to is decided by what can be read, not by names.
                patient.read_data = True
                patient.look()
            if patient.findings and each(patient):
                done = True
                patient.look()
        if not done:
            return


def _title(patient: Patient, mends: bool) -> str:
    if mends:
        return "Mend the checkpoint"
    if patient.findings:
        return "`repair` cannot mend what is wrong here"
    left_open = patient.evidence.left_open
    return "Nothing to repair: the checkpoint is sound" + (f". {left_open}" if left_open else "")


def plan_repair(
    patient: Patient,
    location: str,
    standing: Fingerprint,
    options: RepairOptions,
) -> Plan:
    backup = options.backup
    steps = (*_steps(patient), *patient.sink_steps)
    left = [f"Not repaired: {item.rule} ({item.code}). {item.what}" for item in patient.findings]
    notes = (*patient.notes, *left[:_TOLD])
    if (steps or notes) and patient.evidence.left_open:
        notes = (*notes, patient.evidence.left_open)
    return Plan(
        "repair",
        _title(patient, bool(steps)),
        backup or location,
        location,
        steps,
        (
            Precondition(UNCHANGED, f"{location} still stands at {standing.words}"),
            Precondition(NOT_IN_USE, f"no query runs on {location}"),
        ),
        standing.digest,
        standing.words,
        _block(patient),
        {
            "accept": list(options.accept),
            NEEDED: sorted({risk.name for risk in patient.risks}),
            "repeats": [to_wire(repeat) for risk in patient.risks for repeat in risk.repeats],
            "emits_again": [to_wire(risk.emitted) for risk in patient.risks if risk.emitted],
            "sink": options.sink,
            "backup": backup,
        },
        notes,
        (
            *(Consequence(f"--accept {risk.name}", risk.words, True) for risk in patient.risks),
            *(_in_flight(patient) if steps else ()),
        ),
        sink=patient.sink.place if patient.sink_steps else None,
    )


def _in_flight(patient: Patient) -> tuple[Consequence, ...]:
    """The batch that Spark runs again as after any crash, where no risk tells of it."""
    batch = patient.checkpoint.in_flight_batch
    told = {batch for risk in patient.risks for each in risk.repeats for batch in each.batches}
    return () if batch is None or batch in told else goes_on(batch, patient.sink.sink)


def _steps(patient: Patient) -> tuple[Step, ...]:
    before, files = patient.before, patient.files
    written: list[Step] = []
    for path, data in sorted(files.written.items()):
        why, replaces = patient.reasons[path], path in before
        stored = patient.restored.get(path)
        if stored is not None:
            origin = object_path(stored.sha256)
            written.append(RestoreFile(path, why, origin, size=stored.size, replaces=replaces))
        else:
            written.append(write(path, data, why, replaces))
    # Writes first: taken back, a checksum that was there before must not go with its new file.
    removed = [
        delete(path, patient.reasons[path])
        for path in sorted(files.removed, reverse=True)
        if path in before
    ]
    return (*written, *removed)


def _block(patient: Patient) -> int:
    numbers = [
        number
        for path in patient.before
        if path.startswith((f"{OFFSETS}/", f"{COMMITS}/"))
        and (number := batch_id(path.split("/", 1)[1])) is not None
    ]
    return max(numbers, default=-1) + 1
