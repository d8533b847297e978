"""How much is read a second time, counted where a source's offsets can be."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.changes.repair.patient import SINK, Patient, Repeat
from floodmark.changes.repair.seen_list import seen_list, unlisted
from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.sources.file_log import files_between
from floodmark.checkpoint.sources.kinds import SourceKind
from floodmark.checkpoint.sources.offset import (
    SourceOffset,
    parse_delta_offset,
    parse_kafka_initial,
    parse_log_offset,
)
from floodmark.errors import FloodmarkError


def repeats_of(patient: Patient, after: int, spent: Sequence[int]) -> tuple[Repeat, ...]:
    """What a sink gets again that has the batches `spent`, the last ones after `after`."""
    positions = patient.evidence.positions
    until = spent[-1]
    known = [batch for batch in positions if batch <= until]
    if not known:
        return ()
    last = max(known)
    begun = {source.id: source for source in positions.get(after, ())}
    found = []
    for source in positions[last]:
        unit, count = _count(patient, begun.get(source.id), source, after, last >= until)
        found.append(Repeat(source.id, unit, count, tuple(spent), SINK))
    return tuple(found)


def in_words(repeats: Sequence[Repeat]) -> str:
    """` (12 records of source 0)`."""
    counted = [repeat.words for repeat in repeats]
    return f" ({', '.join(counted)})" if counted else ""


def _count(
    patient: Patient, begun: SourceOffset | None, ended: SourceOffset, after: int, is_end: bool
) -> tuple[str, int | None]:
    """`is_end` is False where the entry of the last batch is lost: `ended` is an earlier one's."""
    first = after < 0
    try:
        if ended.kind is SourceKind.FILE and (first or (begun and begun.offset is not None)):
            return "files", _files(patient, None if first else begun, ended, is_end)
        if ended.kind is SourceKind.KAFKA:
            return "records", _records(patient, begun, ended, first) if is_end else None
        if ended.kind is SourceKind.DELTA and begun is not None and is_end:
            old, new = parse_delta_offset(begun.offset), parse_delta_offset(ended.offset)
            # An offset stands before a version's files, or within them: both versions count.
            return "versions", new.reservoir_version - old.reservoir_version + 1
        if type(ended.offset) is int and is_end and (first or begun is not None):
            start = 0 if first or begun is None else begun.offset
            unit = "seconds" if ended.kind is SourceKind.RATE else "records"
            return unit, ended.offset - start if type(start) is int else None
    except FloodmarkError:
        pass
    return "records", None


def _records(
    patient: Patient, begun: SourceOffset | None, ended: SourceOffset, first: bool
) -> int | None:
    if ended.offset is None or (not first and (begun is None or begun.offset is None)):
        return None
    if first:
        data = patient.files.read(RelativePath(f"{SOURCES}/{ended.id}/0"))
        starts: dict[str, dict[str, int]] = {
            topic: {str(partition): at for partition, at in partitions.items()}
            for topic, partitions in parse_kafka_initial(data).offset.items()
        }
    else:
        assert begun is not None
        starts = begun.offset
    # A partition that is new since then was read from its beginning, which only the broker knows.
    if any(
        partition not in starts.get(topic, {})
        for topic, partitions in ended.offset.items()
        for partition in partitions
    ):
        return None
    ends: dict[str, dict[str, int]] = ended.offset
    return sum(
        end - starts[topic][partition]
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )


def _files(
    patient: Patient, begun: SourceOffset | None, ended: SourceOffset, is_end: bool
) -> int | None:
    after = None if begun is None else parse_log_offset(begun.offset)
    end = parse_log_offset(ended.offset)
    seen = seen_list(patient, ended.id, end)
    if not is_end:
        # The list is written before the batch's entry: what stands behind was planned by it.
        end = max([end, patient.evidence.seen_files.get(ended.id, end), *seen.lost])
    count = len(files_between(seen.files, after, end))
    lowest = -1 if after is None else after
    if not any(lowest < entry <= end for entry in seen.lost):
        return count
    lost = unlisted(patient, seen)
    return None if lost is None else count + lost
