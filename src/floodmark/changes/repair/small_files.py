"""Removes or recreates side files, checksums and temporary files."""

from __future__ import annotations

from floodmark.changes.repair.patient import CHANGES, Patient
from floodmark.changes.repair.state_files import sink_may_have
from floodmark.changes.repair.telling_the_sink import new_number_space
from floodmark.checkpoint.evidence import log_entry, main_file, side_file
from floodmark.checkpoint.layout import COMMITS, OFFSETS, STATE
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.sidefiles import agrees, is_itself_damaged, side_file_of
from floodmark.rules.mend import Mend

_ONE_BIT = "as it was: its side file tells which bit flipped"


def cure(patient: Patient) -> bool:
    """Puts flipped bits back, where the side file tells which they were."""
    for path, data in patient.evidence.cures.items():
        patient.write(path, data, _ONE_BIT)
    return bool(patient.evidence.cures)


def tidy(patient: Patient) -> bool:
    """What was left over by a crash, or by whoever removed the file it belonged to."""
    done = False
    if patient.found(Mend.LEFTOVERS):
        for file in patient.evidence.leftovers:
            patient.remove(file.path, "left over by a write that was stopped")
        done = True
    if patient.found(Mend.FIRST_START):
        for path in patient.evidence.sizes:
            if path.startswith((f"{OFFSETS}/", f"{COMMITS}/", f"{STATE}/")):
                patient.remove(path, "no batch is planned, and Spark wants these folders empty")
        done = True
    for finding in patient.found(Mend.LONE_SIDE_FILE):
        patient.remove(finding.path, "the side file of a file that is not there")
        forget_lost_batch(patient, finding.path)
        done = True
    return done


def forget_lost_batch(patient: Patient, side: str) -> None:
    """An entry whose side file is left was planned once: the sink may have that number."""
    entry = log_entry(main_file(side) or "")
    latest = patient.checkpoint.latest_batch
    if entry is None or entry[0] != OFFSETS or entry[1] != (-1 if latest is None else latest) + 1:
        return
    batch = entry[1]
    if batch not in patient.checkpoint.commit_ids and sink_may_have(patient, batch):
        new_number_space(patient, batch, [batch])


def side_files(patient: Patient) -> bool:
    done = False
    broken = patient.evidence.unusable | patient.evidence.faults.keys()
    for finding in patient.found(Mend.SIDE_FILE):
        path, side = finding.path, side_file(finding.path)
        if path in broken or path in patient.evidence.cures:
            continue
        data = patient.files.read(RelativePath(path))
        if not is_itself_damaged(patient.files.read(RelativePath(side)), data):
            patient.risk(
                CHANGES,
                f"{path} is not what Spark wrote, and it reads well. It is taken as it is: if "
                "nobody changed it on purpose, its content is damaged.",
            )
        patient.write(side, side_file_of(data), f"the checksums of {path}, recreated")
        done = True
    return done


def checksums(patient: Patient) -> bool:
    """Spark's own `<file>.crc` where it, and not the file, is wrong: without one Spark warns."""
    done = False
    evidence = patient.evidence
    for finding in patient.found(Mend.CHECKSUM):
        path = finding.path
        if path.endswith(".crc"):
            patient.remove(path, "a checksum that cannot be read: without it Spark only warns")
            done = True
        elif path not in evidence.faults and _vouched_for(patient, path):
            patient.remove(f"{path}.crc", f"it is wrong: Hadoop's checksums vouch for {path}")
            done = True
    return done


def _vouched_for(patient: Patient, path: str) -> bool:
    side = side_file(path)
    if not patient.has(side):
        return False
    return agrees(patient.files.read(RelativePath(side)), patient.files.read(RelativePath(path)))
