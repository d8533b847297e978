"""Builds the files in `sources/<id>/` of a new checkpoint, so that each source continues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from floodmark.changes.carry.checkpoint_files import belongs
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.rehome import moved_schema_log
from floodmark.changes.carry.resume_point import ResumePoint
from floodmark.changes.plan.steps import Step, copy, write
from floodmark.checkpoint.layout import SOURCES, START_FILE, names_in, source_ids
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.connectors.files.file_log import (
    COMPACT,
    files_between,
    log_id,
    names_to_read,
    render_log,
)
from floodmark.connectors.files.live import read_source_log
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.registry import about, kind_named, read_source_offset
from floodmark.connectors.source import UNKNOWN, SourceKind, SourceOffset, render_json
from floodmark.errors import WouldLose

# No range of log ids goes so far: a file of this entry counts as seen, but in no batch.
NEVER_READ = 2**62


def carry_sources(
    origin: Origin, course: ResumePoint, topics: Mapping[str, str], location: str
) -> Iterator[Step]:
    """Yield the sources' own files, for a stream whose offsets are carried over."""
    checkpoint = origin.checkpoint
    newest = course.after if course.in_flight is None else course.in_flight
    assert newest is not None
    positions = checkpoint.sources_of(newest)
    for source_position in positions:
        _require_seen_list(origin, source_position)
    kinds = {source.id: about(source) for source in positions}
    starts = dict(_carried_starts(origin, course))
    for source in source_ids(checkpoint.files):
        kind = kinds.get(source, kind_named(UNKNOWN))
        if kind.lists_files:
            yield from _carry_file_log(origin, source, course)
            continue
        for path in sorted(origin.sizes):
            if not path.startswith(f"{SOURCES}/{source}/") or not belongs(path):
                continue
            if path in starts:
                yield write(path, starts[path], "where the new checkpoint begins")
            else:
                yield _carried(origin, path, kind, topics, location)


def _carried_starts(origin: Origin, course: ResumePoint) -> Iterator[tuple[str, bytes]]:
    for source in () if course.after is None else origin.checkpoint.sources_of(course.after):
        start = None if source.offset is None else about(source).carried_start(source)
        if start is not None:
            yield f"{SOURCES}/{source.id}/{about(source).start_file}", start


def _carried(
    origin: Origin, path: str, kind: SourceKind, topics: Mapping[str, str], location: str
) -> Step:
    if kind.has_topics and topics and path.endswith("/0"):
        data = kind.renamed_initial(origin.read(path), topics)
        return write(path, data, "where the stream began, with its topics renamed")
    if is_schema_log(path):
        data = moved_schema_log(origin.read(path), location)
        return write(path, data, "the source's schemas; its path leads to the new place")
    return copy(path, "where the stream began" if path.endswith("/0") else "", origin.size(path))


def _carry_file_log(origin: Origin, source: str, course: ResumePoint) -> Iterator[Step]:
    """Yield the list of seen files: its newest compaction, and every entry that it also needs."""
    checkpoint = origin.checkpoint
    read_source_log(origin.files, checkpoint, source)  # it must be whole, or files are read twice
    folder = f"{SOURCES}/{source}"
    names = names_in(checkpoint.files, folder)
    wanted = set(names_to_read(names))
    since = _log_offset(origin, source, None if course.after is None else course.after - 1)
    wanted |= {
        name
        for name in names
        if not name.endswith(COMPACT) and (number := log_id(name)) is not None and number > since
    }
    for name in sorted(wanted, key=lambda name: log_id(name) or 0):
        path = f"{folder}/{name}"
        yield copy(path, "the files that were seen already, compacted", origin.size(path))


def _require_seen_list(origin: Origin, source: SourceOffset) -> None:
    """Refuse a list shorter than the offset: a source writes its list before the offset."""
    if not about(source).lists_files or source.offset is None:
        return
    folder = f"{SOURCES}/{source.id}"
    entries = (log_id(name) for name in names_in(origin.checkpoint.files, folder))
    newest = max((entry for entry in entries if entry is not None), default=-1)
    wanted = parse_log_offset(source.offset)
    if newest < wanted and origin.checkpoint.twin_of(source.id) is None:
        raise WouldLose(
            f"{origin.location}: the list of seen files in {folder} ends before entry {wanted}",
            "The files of the lost entries would be new to the source, and read a second time.",
            "Restore it from a backup, or see what `floodmark repair CP` can do.",
        )


def _log_offset(origin: Origin, source: str, batch: int | None) -> int:
    if batch is None or batch not in origin.checkpoint.offsets:
        return -1
    found = [s for s in origin.checkpoint.sources_of(batch) if s.id == source]
    return parse_log_offset(found[0].offset) if found and found[0].offset is not None else -1


@dataclass(frozen=True)
class Placed:
    """Says where the sources stand, for a stream that begins with batch 0."""

    batch: int
    topics: Mapping[str, str]
    """The new names of renamed Kafka topics."""
    moved: Mapping[str, str]
    """The offset that another cluster gave, by source."""

    def sources(self, origin: Origin) -> tuple[SourceOffset, ...]:
        found = origin.checkpoint.sources_of(self.batch)
        return tuple(self._placed(source) for source in found if source.offset is not None)

    def _placed(self, source: SourceOffset) -> SourceOffset:
        if source.id in self.moved:
            return read_source_offset(source.id, self.moved[source.id])
        if not about(source).has_topics or not self.topics:
            return source
        mapped = about(source).renamed(source.offset, self.topics)
        return replace(source, offset=mapped, text=render_json(mapped))


def refuse_first_snapshot(origin: Origin, placed: Placed) -> None:
    """Refuse a table's unfinished first snapshot, as no option of a reader resumes it."""
    for source in placed.sources(origin):
        if about(source).in_first_snapshot(source.offset):
            raise WouldLose(
                f"--without-state: source {source.id} ({source.kind}) is still inside the "
                "table's first snapshot, which no option resumes",
                "A start file would leave out the part of the snapshot that is not read yet.",
                "Keep the state, or begin with an empty checkpoint: that reads the table from its "
                "beginning.",
            )


def seed_sources(origin: Origin, placed: Placed) -> Iterator[Step]:
    """Yield the sources' files for a stream that begins with batch 0, right after a batch."""
    for source in placed.sources(origin):
        seed = about(source).seed(source)
        if seed is not None:
            yield write(
                f"{SOURCES}/{source.id}/{about(source).start_file}",
                seed,
                f"where the new stream begins; {about(source).seed_over} of the code does not "
                "matter",
            )
        elif about(source).lists_files and origin.checkpoint.twin_of(source.id) is None:
            yield _seen_files(origin, source)


def _seen_files(origin: Origin, source: SourceOffset) -> Step:
    _require_seen_list(origin, source)
    seen = read_source_log(origin.files, origin.checkpoint, source.id)
    taken = files_between(seen, None, parse_log_offset(source.offset))
    entries = [
        replace(
            file,
            batch_id=NEVER_READ,
            text=render_json({**json.loads(file.text), "batchId": NEVER_READ}),
        )
        for file in taken
    ]
    return write(
        f"{SOURCES}/{source.id}/0",
        render_log(entries),
        f"{len(entries)} files that were read already, so that they are not read again",
    )


def start_file(origin: Origin, placed: Placed) -> bytes:
    """Return the positions that a source accepts as an option, for `run --start`."""
    entries = (about(source).start_entry(source) for source in placed.sources(origin))
    sources = [entry for entry in entries if entry is not None]
    value = {"floodmark": "start", "version": 1, "sources": sources}
    return (json.dumps(value, indent=1) + "\n").encode()


def unplaced(origin: Origin, batch: int) -> bool:
    """Whether a source begins as the code says, as nothing can give it a position."""
    return any(
        source.offset is not None
        and not about(source).lists_files
        and about(source).seed(source) is None
        and about(source).start_entry(source) is None
        for source in origin.checkpoint.sources_of(batch)
    )


def _told_by_option(source: SourceOffset) -> str:
    option, _ = about(source).starting_option(source)
    if option is None:
        return "has no way to be given a place: it begins as the code says."
    return (
        f"is given its place by the code alone: begin it with .option({option.name!r}, "
        f"{option.value!r})."
    )


def unseeded(origin: Origin, batch: int) -> Iterator[str]:
    """Yield sentences about sources whose position only the start file, or nothing, gives."""
    for source in origin.checkpoint.sources_of(batch):
        name, kind = f"source {source.id} ({source.kind})", about(source)
        if source.offset is None or kind.lists_files:
            continue
        if kind.seed(source) is not None:
            if kind.seed_note is not None:
                yield f"{name} {kind.seed_note}"
            continue
        if kind.start_entry(source) is None:
            yield f"{name} {_told_by_option(source)}"
            continue
        again = kind.read_again(source.offset)
        if again is not None:
            yield f"{name} {again}"
        yield f"{name} takes its place as an option: start with --start {START_FILE}."
