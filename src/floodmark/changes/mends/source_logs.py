"""What sources keep for themselves: the list of seen files, and where a source began."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.changes.mends.patient import REPEATS, Patient
from floodmark.checkpoint.filelog import (
    COMPACT,
    SourceFile,
    compact_interval,
    log_id,
    missing_ids,
    parse_source_log,
    render_log,
)
from floodmark.checkpoint.layout import SOURCES, names_in
from floodmark.checkpoint.sources import SourceKind, parse_log_offset
from floodmark.checkpoint.text import decode
from floodmark.errors import FloodmarkError, MalformedFile

_MOST = 1000


def seen_files(patient: Patient) -> bool:
    """Entries of a file source's log that are gone or torn: what can be read of them is kept."""
    done = False
    for source, last in _file_sources(patient):
        folder = f"{SOURCES}/{source}"
        names = names_in(patient.checkpoint.files, folder)
        torn = {
            name
            for name in names
            if (fault := patient.evidence.faults.get(f"{folder}/{name}")) and not fault.newer
        }
        newest = patient.evidence.seen_files.get(source, -1)
        lost = {*missing_ids(names), *range(newest + 1, min(last, newest + _MOST) + 1)}
        lost |= {number for name in torn if (number := log_id(name)) is not None}
        for entry in sorted(lost):
            _write_entry(patient, folder, names, entry)
            done = True
    return done


def _file_sources(patient: Patient) -> Iterator[tuple[str, int]]:
    """(source, the entry of its list that the newest batch ends with)."""
    newest = max(patient.evidence.positions, default=None)
    for place in patient.evidence.positions.get(newest, ()) if newest is not None else ():
        if place.kind is SourceKind.FILE and place.offset is not None:
            try:
                yield place.id, parse_log_offset(place.offset)
            except MalformedFile:
                continue


def _write_entry(patient: Patient, folder: str, names: tuple[str, ...], entry: int) -> None:
    compacted = (entry + 1) % compact_interval(names) == 0
    path = f"{folder}/{entry}{COMPACT if compacted else ''}"
    files = _readable(patient, path) if patient.has(path) else ()
    if compacted:
        files = _with_earlier(patient, folder, names, entry, files)
    said = f"with the {len(files)} files that can be told" if files else "with no file in it"
    patient.write(path, render_log(files), f"Spark reads the whole list: the entry again, {said}")
    patient.risk(
        REPEATS,
        f"Files that {path} named{' beyond those that can be told' if files else ''} are new to "
        "the source: those that are still in the input folder are read a second time.",
    )


def _with_earlier(
    patient: Patient, folder: str, names: tuple[str, ...], entry: int, own: tuple[SourceFile, ...]
) -> tuple[SourceFile, ...]:
    """A compaction holds everything before it, which may still lie there entry by entry."""
    told = {file.text: file for file in own}
    for name in names:
        number = log_id(name)
        if number is not None and number < entry:
            told |= {file.text: file for file in _readable(patient, f"{folder}/{name}")}
    return tuple(sorted(told.values(), key=lambda file: file.batch_id))


def _readable(patient: Patient, path: str) -> tuple[SourceFile, ...]:
    """The lines of an entry that are whole."""
    try:
        lines = decode(patient.files.read(path)).split("\n")[1:]
    except FloodmarkError:
        return ()
    name = path.rsplit("/", 1)[1]
    own = log_id(name)
    found: list[SourceFile] = []
    for line in lines:
        try:
            found += parse_source_log(f"v1\n{line}".encode())
        except MalformedFile:
            continue
    return tuple(
        file
        for file in found
        if file.batch_id == own or (name.endswith(COMPACT) and file.batch_id < (own or 0))
    )


def start_files(patient: Patient) -> bool:
    """Kafka reads where it began only while no batch is planned: it can go."""
    done = False
    kinds = {source.id: source.kind for source in patient.checkpoint.sources}
    for finding in patient.found("FM130"):
        if kinds.get(finding.path.split("/")[1]) is SourceKind.KAFKA:
            patient.remove(finding.path, "batches are planned: where Kafka began is not read again")
            done = True
    return done
