"""How much lies between two batches, counted where a source's offsets can be."""

from __future__ import annotations

from floodmark.changes.mends.patient import Patient
from floodmark.checkpoint.filelog import files_between
from floodmark.checkpoint.sources import SourceKind, SourceOffset, parse_log_offset
from floodmark.errors import FloodmarkError
from floodmark.storage.inputs import read_source_log


def span(patient: Patient, after: int, until: int) -> str:
    """` (12 records of source 0)`, or nothing where it cannot be counted."""
    positions = patient.evidence.positions
    ends = [batch for batch in positions if after < batch <= until]
    if not ends:
        return ""
    last = max(ends)
    begun = {source.id: source for source in positions.get(after, ())}
    counted = [
        words
        for source in positions[last]
        if (words := _between(patient, begun.get(source.id), source))
    ]
    if last < until:
        counted.append(f"and what batch {last + 1} to {until} took, which is not known any more")
    return f" ({', '.join(counted)})" if counted else ""


def _between(patient: Patient, begun: SourceOffset | None, ended: SourceOffset) -> str | None:
    if begun is None or begun.offset is None or ended.offset is None:
        return None
    if ended.kind is SourceKind.KAFKA:
        records = sum(
            end - begun.offset.get(topic, {}).get(partition, 0)
            for topic, partitions in ended.offset.items()
            for partition, end in partitions.items()
        )
        return f"{records:,} records of source {ended.id}"
    if ended.kind is SourceKind.FILE:
        return _files(patient, begun, ended)
    return None


def _files(patient: Patient, begun: SourceOffset, ended: SourceOffset) -> str | None:
    try:
        seen = read_source_log(patient.files, patient.checkpoint, ended.id)
        between = parse_log_offset(begun.offset), parse_log_offset(ended.offset)
    except FloodmarkError:
        return None
    count = len(files_between(seen, *between))
    return f"{count:,} file{'s' * (count != 1)} of source {ended.id}"
