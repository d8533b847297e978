"""Removes or recreates side files, checksums and temporary files."""

from __future__ import annotations

from floodmark.changes.repair.batch_numbers import use_numbers_again
from floodmark.changes.repair.state_files import sink_may_have
from floodmark.changes.repair.working_copy import CHANGES, WorkingCopy
from floodmark.checkpoint.checksums.sidefiles import agrees, is_itself_damaged, side_file_of
from floodmark.checkpoint.evidence import log_entry
from floodmark.checkpoint.layout import (
    CHECKSUM,
    COMMITS,
    OFFSETS,
    STATE,
    checksum_file,
    main_file,
    side_file,
)
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.rules.mend import Mend

_ONE_BIT = "as it was: its side file tells which bit flipped"


def cure(work: WorkingCopy) -> bool:
    """Restore flipped bits, if the side file shows which ones flipped."""
    for path, data in work.evidence.cures.items():
        work.write(path, data, _ONE_BIT)
    return bool(work.evidence.cures)


def tidy(work: WorkingCopy) -> bool:
    """Remove leftovers of a crash, or of somebody who removed the main file."""
    done = False
    if work.found(Mend.LEFTOVERS):
        for file in work.evidence.leftovers:
            work.remove(file.path, "left over by a write that was stopped")
        done = True
    if work.found(Mend.FIRST_START):
        for path in work.evidence.sizes:
            if path.startswith((f"{OFFSETS}/", f"{COMMITS}/", f"{STATE}/")):
                work.remove(path, "no batch is planned, and Spark wants these folders empty")
        done = True
    for finding in work.found(Mend.LONE_SIDE_FILE):
        work.remove(finding.path, "the side file of a file that is not there")
        forget_lost_batch(work, finding.path)
        done = True
    return done


def forget_lost_batch(work: WorkingCopy, side: str) -> None:
    """Handle a side file without its entry: the batch was planned, so a sink may have it."""
    entry = log_entry(main_file(side) or "")
    latest = work.checkpoint.latest_batch
    if entry is None or entry[0] != OFFSETS or entry[1] != (-1 if latest is None else latest) + 1:
        return
    batch = entry[1]
    if batch not in work.checkpoint.commit_ids and sink_may_have(work, batch):
        use_numbers_again(work, batch, [batch])


def side_files(work: WorkingCopy) -> bool:
    done = False
    broken = work.evidence.unusable | work.evidence.faults.keys()
    for finding in work.found(Mend.SIDE_FILE):
        path, side = finding.path, side_file(finding.path)
        if path in broken or path in work.evidence.cures:
            continue
        data = work.files.read(RelativePath(path))
        if not is_itself_damaged(work.files.read(RelativePath(side)), data):
            work.risk(
                CHANGES,
                f"{path} is not what Spark wrote, and it reads well. It is taken as it is: if "
                "nobody changed it on purpose, its content is damaged.",
            )
        work.write(side, side_file_of(data), f"the checksums of {path}, recreated")
        done = True
    return done


def checksums(work: WorkingCopy) -> bool:
    """Remove Spark's own `<file>.crc` if it is wrong and the file is right; Spark then warns."""
    done = False
    evidence = work.evidence
    for finding in work.found(Mend.CHECKSUM):
        path = finding.path
        if path.endswith(CHECKSUM):
            work.remove(path, "a checksum that cannot be read: without it Spark only warns")
            done = True
        elif path not in evidence.faults and _vouched_for(work, path):
            work.remove(checksum_file(path), f"it is wrong: Hadoop's checksums vouch for {path}")
            done = True
    return done


def _vouched_for(work: WorkingCopy, path: str) -> bool:
    side = side_file(path)
    if not work.has(side):
        return False
    return agrees(work.files.read(RelativePath(side)), work.files.read(RelativePath(path)))
