"""Finds what ran after a snapshot was taken, and what a restore means for the sinks.

A restored stream plans its next batches again, with numbers that sinks may have seen with other
records. Three places know how far the query ran: the sink's own log, the checkpoint that is
replaced, and the checkpoint of which the snapshot was taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from floodmark.changes import journal
from floodmark.changes.carry.sink_log import SinkPlace, trim_sink_log
from floodmark.changes.named_places import not_named
from floodmark.changes.plan.steps import Step
from floodmark.changes.sinks import Consequences, Sink, consequences, read_again, sink_of
from floodmark.changes.sinks.known_sink import KnownSink, known_sink
from floodmark.changes.sinks.read_again import Again
from floodmark.changes.sources.gone_input import gone_input
from floodmark.changes.sources.out_of_reach import Reach, require_reach
from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, STARTS, STATE, batch_id
from floodmark.checkpoint.metadata import parse_metadata
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files
from floodmark.storage.last_start import latest_note
from floodmark.storage.load import Entries, load
from floodmark.storage.repository import Snapshot, fetch

Opened = Callable[[str], Files]


@dataclass(frozen=True)
class RestoreOptions:
    snapshot: str | None = None
    accept: tuple[str, ...] = ()
    keep_identity: bool = False
    sink: str | None = None
    """The file sink's output folder, whose log goes back too."""


@dataclass(frozen=True)
class Since:
    """Says how far the query ran after the snapshot, and what the restore does about it."""

    after: int
    """The snapshot's last committed batch; -1: none."""
    in_flight: int | None
    highest: int | None
    """The highest batch that was ever planned; None: unknown."""
    other_query: str | None = None
    """The query that has replaced it: it may have read the same records since."""
    replanned: bool = False
    """True where the batch in flight was planned again since, with another range."""
    notes: tuple[str, ...] = ()
    new_id: bool = False
    consequences: Consequences = ()
    sink: str | None = None
    sink_steps: tuple[Step, ...] = ()
    stateful: bool = False

    @property
    def ran_on(self) -> bool:
        """Whether the query planned batches after those of the snapshot; true if unknown."""
        top = self.after if self.in_flight is None else self.in_flight
        known = self.highest is not None and self.highest <= top
        return not known or self.replanned or self.other_query is not None


def look_since(
    repository: Files,
    snapshot: Snapshot,
    target: Files,
    goal: str,
    options: RestoreOptions,
    opened: Opened,
) -> Since:
    """Ask every place that may know how far the query ran; `goal` is the target's location."""
    note = latest_note(target) or _snapshot_note(repository, snapshot)
    given = (options.sink, opened(options.sink)) if options.sink is not None else None
    known = known_sink(note, given, opened)
    sink = sink_of(note)
    if given is not None and known.by_number and (sink is None or sink.kind not in FILE_SINKS):
        sink = Sink("parquet", options.sink)
    found = _ran_on(snapshot, target, goal, known, opened)
    found = replace(found, other_query=_other_query(target, snapshot))
    since = _settled(found, sink, known, options, snapshot.query_id)
    if not since.ran_on:
        return since
    gone = _gone_input(repository, snapshot, (goal, snapshot.location), opened)
    return replace(since, notes=(*since.notes, *require_reach(gone, options.accept)))


def _gone_input(
    repository: Files, snapshot: Snapshot, places: tuple[str, str], opened: Opened
) -> Reach:
    """Find lost files among those read after the snapshot, by the lists of the checkpoints."""
    entry = next((f for f in snapshot.files if f.path == f"{OFFSETS}/{snapshot.batch}"), None)
    for place in places:
        try:
            files = opened(place)
            checkpoint = load(files, Entries.NEWEST)
            if checkpoint.query_id == snapshot.query_id:
                begins = None if entry is None else parse_offsets(fetch(repository, entry))
                return gone_input(files, checkpoint, begins, opened)
        except FloodmarkError:
            continue  # that place cannot tell
    return Reach((), ())


def _other_query(target: Files, snapshot: Snapshot) -> str | None:
    try:
        there = parse_metadata(target.read(METADATA)).id
    except FloodmarkError:
        return None
    return there if there != snapshot.query_id else None


def _settled(
    since: Since,
    sink: Sink | None,
    known: KnownSink,
    options: RestoreOptions,
    query_id: str | None,
) -> Since:
    lost = tuple(_lost(since, known))
    if not since.ran_on:
        top = since.after if since.in_flight is None else since.in_flight
        asked = known.newest_of(query_id)
        copies = consequences.other_copies(asked, top, since.in_flight, sink, since.stateful)
        told = consequences.goes_on(since.in_flight, sink)
        return replace(since, consequences=(*lost, *consequences.with_copies(copies, told)))
    place: SinkPlace | None = None
    unnamed: tuple[str, ...] = ()
    if known.by_number and known.files is not None and known.place is not None:
        if known.named:
            place = (known.place, known.files)
        else:
            unnamed = (not_named(known.place),)
    trim = trim_sink_log(place[1], since.after) if place else None
    trimmed = trim is not None and not trim.words
    told = read_again.restored(
        Again(
            since.after,
            since.highest,
            trimmed,
            options.keep_identity,
            in_flight=since.in_flight,
            stateful=since.stateful,
            other_query=since.other_query,
        ),
        sink,
    )
    if since.highest is not None and known.newest_of(query_id) is None:
        # The checkpoints that were found only know their own batches.
        told = (*told, *consequences.other_copies(None, since.highest, None, sink, since.stateful))
    notes = [*since.notes, *unnamed]
    if trim is not None and trim.words:
        notes.append(f"The file sink's log stays as it is: {trim.words}.")
    return replace(
        since,
        notes=tuple(notes),
        new_id=not options.keep_identity,
        consequences=(*lost, *told),
        sink=place[0] if place and trim and trim.steps else None,
        sink_steps=trim.steps if trim else (),
    )


def _lost(since: Since, known: KnownSink) -> Iterator[Any]:
    newest = known.newest.get("") if known.by_number else None
    if newest is not None and newest < since.after:
        yield read_again.lost_output(newest + 1, since.after)


def _ran_on(
    snapshot: Snapshot, target: Files, goal: str, known: KnownSink, opened: Opened
) -> Since:
    numbers = sorted(_numbers(file.path for file in snapshot.files))
    after = -1 if snapshot.batch is None else snapshot.batch
    top = max(numbers, default=-1)
    stateful = any(file.path.startswith(f"{STATE}/") for file in snapshot.files)
    since = Since(after, top if top > after else None, None, stateful=stateful)
    recorded = known.newest_of(snapshot.query_id)
    if recorded is not None:
        highest = max(recorded, after)
        words = f"The sink's own log has batches up to {recorded} of this query."
        if known.by_number:
            words = f"The sink's own log ends at batch {recorded}."
        others = _other_queries(known, snapshot.query_id)
        replanned = recorded >= top > after and any(
            _replanned(files, snapshot, top)
            for files in _places(target, goal, snapshot.location, opened)
        )
        return replace(since, highest=highest, replanned=replanned, notes=(words, *others))
    heights = {goal: _height(target, snapshot, top)}
    if goal != snapshot.location:
        try:
            heights[snapshot.location] = _height(opened(snapshot.location), snapshot, top)
        except FloodmarkError:
            heights[snapshot.location] = None
    seen = {place: height for place, height in heights.items() if height is not None}
    if not seen:
        return replace(since, notes=(_unknown(snapshot, heights),))
    place, highest = max(seen.items(), key=lambda item: item[1])
    notes: tuple[str, ...] = ()
    if highest > top:
        notes = (f"{place} has planned batches up to {highest} since.",)
    if goal != snapshot.location and snapshot.location in seen:
        notes += (f"{snapshot.location} is still there: run one of the two on one sink.",)
    return replace(since, highest=highest, notes=notes)


def _unknown(snapshot: Snapshot, places: dict[str, int | None]) -> str:
    return (
        f"Nothing says whether query {snapshot.query_id} ran on after the snapshot: its checkpoint "
        f"is not at {' nor at '.join(sorted(places))}, and the sink was not found. If it ran no "
        "batch since, --keep-identity is right: sinks then know the batch in flight."
    )


def _other_queries(known: KnownSink, query_id: str | None) -> Iterator[str]:
    """Report other queries in the sink: a rewind or `upgrade --new-identity` gives a new id."""
    others = {name: newest for name, newest in known.newest.items() if name != query_id}
    if known.by_query and others:
        name = max(others, key=lambda one: others[one])
        yield (
            f"The sink has batches of other queries as well, the highest is {others[name]} of "
            f"{name}. If one of them went on from this stream under a new id, the sink gets the "
            "records of its batches a second time."
        )


def _height(files: Files, snapshot: Snapshot, top: int) -> int | None:
    """Return the highest batch of this query at a location; None: unknown."""
    try:
        if parse_metadata(files.read(METADATA)).id != snapshot.query_id:
            return None
        blocks = journal.blocks(files)
        paths = [f"{log}/{name}" for log in (OFFSETS, COMMITS) for name in files.level(log).files]
        highest = max(_numbers(path for path in paths if path not in blocks), default=-1)
        if highest < top:
            return None  # it has lost entries that the snapshot has
        if highest == top and not _same_entry(files, snapshot, f"{OFFSETS}/{top}"):
            return None
    except FloodmarkError:
        return None
    return highest


def _places(target: Files, goal: str, location: str, opened: Opened) -> Iterator[Files]:
    yield target
    if location != goal:
        try:
            yield opened(location)
        except FloodmarkError:
            return


def _replanned(files: Files, snapshot: Snapshot, batch: int) -> bool:
    """Whether the location has this query's batch with another content than the snapshot."""
    try:
        return parse_metadata(files.read(METADATA)).id == snapshot.query_id and not _same_entry(
            files, snapshot, f"{OFFSETS}/{batch}"
        )
    except FloodmarkError:
        return False


def _same_entry(files: Files, snapshot: Snapshot, path: str) -> bool:
    stored = next((file for file in snapshot.files if file.path == path), None)
    return (
        stored is None
        or hashlib.sha256(files.read(RelativePath(path))).hexdigest() == stored.sha256
    )


def _numbers(paths: Any) -> Iterator[int]:
    for path in paths:
        folder, _, name = path.partition("/")
        number = batch_id(name)
        if folder in (OFFSETS, COMMITS) and number is not None:
            yield number


def _snapshot_note(repository: Files, snapshot: Snapshot) -> dict[str, Any] | None:
    numbered = {
        number: file
        for file in snapshot.files
        if file.path.startswith(f"{STARTS}/")
        and (number := batch_id(file.path.rsplit("/", 1)[-1].removesuffix(".json"))) is not None
    }
    if not numbered:
        return None
    try:
        value = json.loads(fetch(repository, numbered[max(numbered)]))
    except (FloodmarkError, ValueError):
        return None
    return value if isinstance(value, dict) else None
