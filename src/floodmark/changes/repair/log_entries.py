"""Repairs entries of offsets/ and commits/ that their neighbours determine."""

from __future__ import annotations

from floodmark.changes.repair.emitted import risk_repeats
from floodmark.changes.repair.working_copy import WorkingCopy
from floodmark.checkpoint.derived_entries import derived_commit, stand_in
from floodmark.checkpoint.evidence import log_entry
from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.rules.mend import Mend

_DERIVED = "derived: Spark plans a batch only when the one before it is committed"


def commits(work: WorkingCopy) -> bool:
    """Restore commits that are torn or gone, if later entries prove that the batches finished."""
    checkpoint = work.checkpoint
    done = False
    for path, fault in work.evidence.faults.items():
        entry = log_entry(path)
        if entry is None or entry[0] != COMMITS or fault.newer:
            continue
        done = _again(work, entry[1], "the commit was written, so its batch had finished") or done
    for batch in _lost(work):
        data = derived_commit(checkpoint, batch)
        if data is not None:
            work.write(f"{COMMITS}/{batch}", data, _DERIVED)
            done = True
    if done and work.found(Mend.OLDER_COMMITS, Mend.NEWEST_COMMIT):
        _newest_runs_again(work)
    return done


def _newest_runs_again(work: WorkingCopy) -> None:
    """Add the risk that the newest batch was committed, and that its sink has its rows."""
    batch = work.checkpoint.latest_batch
    sink = work.sink
    # A sink whose log was read skips the batch if it has it: the query id stays as it is.
    if batch is None or sink.log_is_read or sink.replaces:
        return
    risk_repeats(
        work,
        f"Commits were lost, so it is not known whether batch {batch} was committed. Spark runs it "
        "again over the same offsets",
        "if it was committed, a sink that does not remember batches (Kafka, foreach, a "
        "foreachBatch that appends) gets its rows a second time.",
        batch - 1,
        [batch],
    )


def _again(work: WorkingCopy, batch: int, why: str) -> bool:
    data = derived_commit(work.checkpoint, batch)
    path = f"{COMMITS}/{batch}"
    if data is not None:
        work.write(path, data, why)
        _say_older_watermark(work, batch)
        return True
    if batch == work.checkpoint.latest_batch == work.checkpoint.committed_batch:
        work.remove(path, f"batch {batch} is run again over the same offsets, as after a crash")
        _newest_runs_again(work)
        return True
    return False


def _say_older_watermark(work: WorkingCopy, batch: int) -> None:
    """Note an unknown watermark: a later entry would show it, but the newest has none after it."""
    entries = work.checkpoint.offsets
    planned = entries.get(batch)
    if batch + 1 in entries or not work.keeps_state or planned is None or not planned.metadata:
        return
    if batch == 0 or planned.metadata.batch_watermark_ms > 0:
        work.note(
            f"What watermark batch {batch} had reached is lost with its commit: if the query has "
            "one, it goes on with that of the batch before. Windows close later, and late rows "
            "are counted that would have been dropped."
        )


def _lost(work: WorkingCopy) -> tuple[int, ...]:
    checkpoint = work.checkpoint
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    if latest is None:
        return ()
    if work.found(Mend.NEWEST_COMMIT):
        return (latest - 1,)
    if work.found(Mend.OLDER_COMMITS) and committed is not None:
        # Those that are planned: a file's name may be any number, which nobody counts up to.
        return tuple(batch for batch in sorted(checkpoint.offsets) if committed < batch < latest)
    return ()


def entry_before_the_newest(work: WorkingCopy) -> bool:
    """Restore the entry before the newest, which Spark opens but does not use if both finished."""
    checkpoint = work.checkpoint
    latest = checkpoint.latest_batch
    if latest is None or latest != checkpoint.committed_batch:
        return False
    before = latest - 1
    path = f"{OFFSETS}/{before}"
    gaps = {item.path.split("/")[1] for item in work.found(Mend.OFFSET_ENTRY, errors=True)}
    torn = path in work.evidence.faults and not work.evidence.faults[path].newer
    if str(before) not in gaps and not torn:
        return False
    data = stand_in(checkpoint, before)
    if data is None:
        return False
    work.write(path, data, f"Spark opens the entry before offsets/{latest}, and uses nothing of it")
    # Going back to a batch with an invented entry would skip or repeat records. So older entries
    # are removed, as by retention, and nobody can go back to them.
    why = f"the entry of batch {before} is lost, so no rewind may go back past it"
    for batch in checkpoint.commit_ids:
        if batch <= before:
            work.remove(f"{COMMITS}/{batch}", why)
    for batch in checkpoint.offset_ids:
        if batch < before:
            work.remove(f"{OFFSETS}/{batch}", why)
    return True


def unfinished_repartition(work: WorkingCopy) -> bool:
    found = work.found(Mend.REPARTITION)
    for finding in found:
        batch = int(finding.path.split("/")[1])
        work.remove(finding.path, "a repartition that was begun: this batch reads nothing")
        for file in work.checkpoint.state_files:
            if file.version == batch + 1:
                work.remove(file.path, "state of the repartition that was not finished")
    return bool(found)
