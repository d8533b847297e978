"""Repairs the sources' own files: the list of seen files and the start."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from floodmark.changes.repair.earlier_batch import go_back
from floodmark.changes.repair.seen_list import SeenList, readable, seen_list, unlisted
from floodmark.changes.repair.working_copy import CHANGES, REPEATS, STREAM, Repeat, WorkingCopy
from floodmark.checkpoint.file_sources import file_sources
from floodmark.checkpoint.layout import OFFSETS
from floodmark.connectors.files.file_log import (
    COMPACT,
    SourceFile,
    compact_interval,
    log_id,
    render_log,
)
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.registry import about
from floodmark.errors import MalformedFile
from floodmark.rules.mend import Mend

_TOLD = 5
_RATE_STEP_MS = 1000


def seen_files(work: WorkingCopy) -> bool:
    """Replace entries of a file source's log that are gone or torn."""
    lists = [seen_list(work, source, last) for source, last in _file_sources(work)]
    broken = [seen for seen in lists if seen.lost]
    if not broken:
        return False
    batch = _batch_before(work, broken)
    if batch is not None and _go_back(work, broken, batch):
        return True
    for seen in broken:
        for entry in sorted(seen.lost):
            _write_entry(work, seen, entry)
        _say_what_it_means(work, seen)
    return True


def _file_sources(work: WorkingCopy) -> Iterator[tuple[str, int]]:
    """Yield each source with the entry of its list with which the newest batch ends."""
    newest = max(work.evidence.positions, default=None)
    if newest is not None:
        yield from _ends(work, newest).items()


def _ends(work: WorkingCopy, batch: int) -> dict[str, int]:
    """Return, for each file source, the entry of its list with which a batch ends."""
    found = {}
    for place in file_sources(work.evidence, batch):
        with contextlib.suppress(MalformedFile):
            found[place.id] = parse_log_offset(place.offset)
    return found


def _batch_before(work: WorkingCopy, broken: list[SeenList]) -> int | None:
    """Return the newest whole batch that needs none of the lost entries, if going back does less
    harm: where no commit is lost by it, or where a state would count files twice.
    """
    checkpoint = work.checkpoint
    if not checkpoint.commit_ids:
        return -1 if checkpoint.offset_ids == (0,) else None
    for batch in reversed(checkpoint.commit_ids):
        if batch != checkpoint.committed_batch and not checkpoint.state_operators:
            return None
        ends = _ends(work, batch)
        known = batch in checkpoint.commits and f"{OFFSETS}/{batch}" not in work.evidence.faults
        before = all(seen.source in ends and seen.is_whole_to(ends[seen.source]) for seen in broken)
        if known and before and work.evidence.is_whole(batch + 1):
            return batch
    return None


def _go_back(work: WorkingCopy, broken: list[SeenList], batch: int) -> bool:
    """Go back, and remove the entries of later batches, so that their files are read again."""
    ends = _ends(work, batch)
    if not go_back(work, batch, same_range=False):
        return False
    for seen in broken:
        # Checksums of an entry that is gone would block the new entry.
        for name in {*seen.names, *map(str, seen.lost)}:
            number = log_id(name)
            if number is not None and number > ends.get(seen.source, -1):
                work.remove(f"{seen.folder}/{name}", "its files are taken again")
    return True


def _write_entry(work: WorkingCopy, seen: SeenList, entry: int) -> None:
    compacted = (entry + 1) % compact_interval(seen.names) == 0
    path = f"{seen.folder}/{entry}{COMPACT if compacted else ''}"
    files = readable(work, path) if work.has(path) else ()
    if compacted:
        files = _with_earlier(work, seen, entry, files)
    said = f"with the {len(files)} files that can be told" if files else "with no file in it"
    work.write(path, render_log(files), f"Spark reads the whole list: the entry again, {said}")


def _say_what_it_means(work: WorkingCopy, seen: SeenList) -> None:
    """Report the risk, counted by the files in the input folder that no entry names."""
    source = seen.source
    mended = seen_list(work, source, max(seen.lost))
    repeat = Repeat(source, "files", unlisted(work, mended), (), STREAM)
    names = ", ".join(str(entry) for entry in sorted(seen.lost)[:_TOLD])
    work.risk(
        REPEATS,
        f"Files that only the lost entries of sources/{source} ({names}) named are new to the "
        f"source: those that are still in the input folder are read a second time, at most "
        f"{repeat.words}.",
        (repeat,),
    )


def _with_earlier(
    work: WorkingCopy, seen: SeenList, entry: int, own: tuple[SourceFile, ...]
) -> tuple[SourceFile, ...]:
    """Add earlier files to a compaction, if their own entries still exist."""
    told = {file.text: file for file in own}
    for name in seen.names:
        number = log_id(name)
        if number is not None and number < entry:
            told |= {file.text: file for file in readable(work, f"{seen.folder}/{name}")}
    return tuple(sorted(told.values(), key=lambda file: file.batch_id))


def start_files(work: WorkingCopy) -> bool:
    """Restore the file that says where a source began. Kafka reads it only while no batch is
    planned; a rate source counts its seconds from it, so its offsets show the start.
    """
    done = False
    begun = {one.id for one in work.checkpoint.sources if about(one).begins_once}
    for finding in work.found(Mend.SOURCE_START):
        source = finding.path.split("/")[1]
        start = work.evidence.rate_starts.get(source)
        if source in begun:
            work.remove(finding.path, "batches are planned: where Kafka began is not read again")
            done = True
        elif start is not None:
            work.write(finding.path, f"v1\n{start}".encode(), "by its batches: time and seconds")
            work.risk(
                CHANGES,
                f"{finding.path} is derived: source {source} began up to {_RATE_STEP_MS} ms "
                "before, so the times in its rows are later by as much. Their values are as "
                "they were.",
            )
            done = True
    return done


def start_snapshots(work: WorkingCopy) -> bool:
    """Restore the start of an Iceberg source: its present snapshot serves as well."""
    batch = work.evidence.begins_after
    positions = () if batch is None else work.evidence.positions.get(batch, ())
    standing = {one.id: one for one in positions if one.offset is not None}
    done = False
    for finding in work.found(Mend.SOURCE_SNAPSHOT):
        position = standing.get(finding.path.split("/")[1])
        start = None if position is None else about(position).carried_start(position)
        if start is not None:
            work.write(finding.path, start, "the snapshot in which the stream stands")
            done = True
    return done
