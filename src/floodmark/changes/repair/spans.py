"""Counts how much is read a second time, where a source's offsets allow it."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.changes.repair.seen_list import seen_list, unlisted
from floodmark.changes.repair.working_copy import SINK, Repeat, WorkingCopy
from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.file_log import files_between
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.errors import FloodmarkError


def repeats_of(work: WorkingCopy, after: int, spent: Sequence[int]) -> tuple[Repeat, ...]:
    """Return what a sink gets again if it has the batches `spent`, the last ones after `after`."""
    positions = work.evidence.positions
    until = spent[-1]
    known = [batch for batch in positions if batch <= until]
    if not known:
        return ()
    last = max(known)
    begun = {source.id: source for source in positions.get(after, ())}
    found = []
    for source in positions[last]:
        unit, count = _count(work, begun.get(source.id), source, after, last >= until)
        found.append(Repeat(source.id, unit, count, tuple(spent), SINK))
    return tuple(found)


def in_words(repeats: Sequence[Repeat]) -> str:
    """Return text such as ` (12 records of source 0)`."""
    counted = [repeat.words for repeat in repeats]
    return f" ({', '.join(counted)})" if counted else ""


def _count(
    work: WorkingCopy, begun: SourceOffset | None, ended: SourceOffset, after: int, is_end: bool
) -> tuple[str, int | None]:
    """Count a source; `is_end` is False where the last batch's entry is lost."""
    kind, first = about(ended), after < 0
    try:
        if kind.lists_files and (first or (begun and begun.offset is not None)):
            return kind.unit, _files(work, None if first else begun, ended, is_end)
        if is_end:
            count = kind.count(_begin(work, begun, ended, first), ended.offset)
            return (kind.unit if count is not None else "records"), count
    except FloodmarkError:
        pass
    return "records", None


def _begin(
    work: WorkingCopy, begun: SourceOffset | None, ended: SourceOffset, first: bool
) -> object:
    if not first:
        return None if begun is None else begun.offset
    kind = about(ended)
    path = RelativePath(f"{SOURCES}/{ended.id}/0")
    return kind.first_offset(work.files.read(path) if kind.begins_once else None)


def _files(
    work: WorkingCopy, begun: SourceOffset | None, ended: SourceOffset, is_end: bool
) -> int | None:
    after = None if begun is None else parse_log_offset(begun.offset)
    end = parse_log_offset(ended.offset)
    seen = seen_list(work, ended.id, end)
    if not is_end:
        # The list is written before the batch's entry: later entries were planned by that batch.
        end = max([end, work.evidence.seen_files.get(ended.id, end), *seen.lost])
    count = len(files_between(seen.files, after, end))
    lowest = -1 if after is None else after
    if not any(lowest < entry <= end for entry in seen.lost):
        return count
    lost = unlisted(work, seen)
    return None if lost is None else count + lost
