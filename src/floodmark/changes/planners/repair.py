"""Plans `repair`: the smallest safe repair for each finding that has one.

The smallest repairs come first. After each of them the doctor looks again, because one fault
often causes others. The plan names what may repeat records or keep damaged content; the user
accepts it by that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from floodmark.changes.fingerprint import Fingerprint
from floodmark.changes.plan import (
    NEEDED,
    Consequence,
    Plan,
    unchanged_and_idle,
)
from floodmark.changes.plan.steps import RestoreFile, Step, delete, write
from floodmark.changes.repair import (
    descriptions,
    earlier_batch,
    identity,
    log_entries,
    small_files,
    source_logs,
    state_files,
)
from floodmark.changes.repair.from_backup import Backup
from floodmark.changes.repair.working_copy import WorkingCopy
from floodmark.changes.sinks.consequences import goes_on
from floodmark.checkpoint.layout import COMMITS, OFFSETS, batch_id
from floodmark.rules.mend import Mend
from floodmark.storage.repository import object_path
from floodmark.wire import to_wire

_MENDS: tuple[Callable[[WorkingCopy], bool], ...] = (
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
    source_logs.start_snapshots,
    descriptions.schema_paths,
    descriptions.partition_count,
    descriptions.settings,
    descriptions.torn,
    state_files.pass_over,
    earlier_batch.fall_back,
)
_MOST_ROUNDS = 4
_TOLD = 20


@dataclass(frozen=True)
class RepairOptions:
    accept: tuple[str, ...] = ()
    sink: str | None = None
    read_data: bool = False
    backup: str | None = None


def mend(work: WorkingCopy, backup: Backup | None = None) -> None:
    """Make every possible repair, in the overlay."""
    mends: Sequence[Callable[[WorkingCopy], bool]] = _MENDS
    if backup is not None:
        mends = (backup.restore, *_MENDS)
    for _ in range(_MOST_ROUNDS):
        done = False
        for each in mends:
            if work.found(Mend.STATE) and not work.read_data:
                # The batch to go back to depends on what can be read, not on names.
                work.read_data = True
                work.look()
            if work.findings and each(work):
                done = True
                work.look()
        if not done:
            return


def _title(work: WorkingCopy, mends: bool) -> str:
    if mends:
        return "Repair the checkpoint"
    if work.findings:
        return "No repair is known for what is wrong here"
    left_open = work.evidence.left_open
    return "Nothing to repair: the checkpoint is sound" + (f". {left_open}" if left_open else "")


def plan_repair(
    work: WorkingCopy,
    location: str,
    standing: Fingerprint,
    options: RepairOptions,
) -> Plan:
    backup = options.backup
    steps = (*_steps(work), *work.sink_steps)
    left = [f"Not repaired: {item.rule} ({item.code}). {item.what}" for item in work.findings]
    notes = (*work.notes, *left[:_TOLD])
    if (steps or notes) and work.evidence.left_open:
        notes = (*notes, work.evidence.left_open)
    return Plan(
        "repair",
        _title(work, bool(steps)),
        backup or location,
        location,
        steps,
        unchanged_and_idle(location, standing.words),
        standing.digest,
        standing.words,
        _block(work),
        {
            "accept": list(options.accept),
            NEEDED: sorted({risk.name for risk in work.risks}),
            "repeats": [to_wire(repeat) for risk in work.risks for repeat in risk.repeats],
            "emits_again": [to_wire(risk.emitted) for risk in work.risks if risk.emitted],
            "sink": options.sink,
            "backup": backup,
        },
        notes,
        (
            *(Consequence(f"--accept {risk.name}", risk.words, True) for risk in work.risks),
            *(_in_flight(work) if steps else ()),
        ),
        sink=work.sink.place if work.sink_steps else None,
    )


def _in_flight(work: WorkingCopy) -> tuple[Consequence, ...]:
    """Return the batch that Spark runs again as after a crash, unless a risk names it."""
    batch = work.checkpoint.in_flight_batch
    told = {batch for risk in work.risks for each in risk.repeats for batch in each.batches}
    return () if batch is None or batch in told else goes_on(batch, work.sink.sink)


def _steps(work: WorkingCopy) -> tuple[Step, ...]:
    before, files = work.before, work.files
    written: list[Step] = []
    for path, data in sorted(files.written.items()):
        why, replaces = work.reasons[path], path in before
        stored = work.restored.get(path)
        if stored is not None:
            origin = object_path(stored.sha256)
            written.append(RestoreFile(path, why, origin, size=stored.size, replaces=replaces))
        else:
            written.append(write(path, data, why, replaces))
    # Writes first: when taken back, an old checksum must not be deleted with its new file.
    removed = [
        delete(path, work.reasons[path])
        for path in sorted(files.removed, reverse=True)
        if path in before
    ]
    return (*written, *removed)


def _block(work: WorkingCopy) -> int:
    numbers = [
        number
        for path in work.before
        if path.startswith((f"{OFFSETS}/", f"{COMMITS}/"))
        and (number := batch_id(path.split("/", 1)[1])) is not None
    ]
    return max(numbers, default=-1) + 1
