"""Reads the checkpoint for a planner, with access to its other files."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from floodmark.changes import journal
from floodmark.changes.fingerprint import Fingerprint, fingerprint
from floodmark.changes.journal import Stage
from floodmark.changes.named_places import not_named
from floodmark.changes.plan import (
    Consequence,
    Precondition,
    unchanged_and_idle,
)
from floodmark.changes.sinks import FILES, Sink, consequences, sink_of
from floodmark.changes.sinks.consequences import taken_back_alone
from floodmark.checkpoint.layout import (
    COMMITS,
    OFFSETS,
    FileInfo,
    batch_ids,
    is_dstreams_checkpoint,
)
from floodmark.checkpoint.metadata import new_metadata, render_metadata
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.errors import MalformedFile, NotACheckpoint, Refused
from floodmark.storage.files import Files, Listing
from floodmark.storage.last_start import latest_note
from floodmark.storage.load import Entries, load_listed


@dataclass(frozen=True)
class Origin:
    location: str
    """The absolute location."""
    files: Files
    checkpoint: Checkpoint
    standing: Fingerprint
    sink: Sink | None
    sizes: Mapping[str, int]
    sink_newest: int | None = None
    """The newest batch of this query in the sink's own log; None: the sink was not asked."""

    def read(self, path: str) -> bytes:
        return self.files.read(RelativePath(path))

    def size(self, path: str) -> int:
        return self.sizes[path]

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        return unchanged_and_idle(self.location, self.standing.words)


def sink_left_ahead(origin: Origin) -> tuple[Consequence, ...]:
    """Return what a file sink does if the checkpoint went back and its log did not."""
    if origin.sink is not None and origin.sink.kind not in FILE_SINKS:
        return ()
    checkpoint = origin.checkpoint
    newest = max((*checkpoint.offset_ids, *checkpoint.commit_ids), default=-1)
    verb, until = file_sink_left_at(origin)
    return () if until <= newest else (taken_back_alone(verb, newest + 1, until),)


def file_sink_left_at(origin: Origin) -> tuple[str, int]:
    """Return the change that left a file sink's log furthest ahead, and the log's newest batch.

    A new checkpoint learns from the plan that made it what its origin had left.
    """
    found = [("", -1)]
    for record in journal.read_records(origin.files):
        plan = record.plan
        if record.stage is not Stage.FINISHED or plan.sink is not None:
            continue
        if plan.in_place:
            found.append((plan.verb, plan.block - 1))
        for item in plan.consequences:
            if not plan.in_place and item.sink == FILES and item.skips is not None:
                found.append((plan.verb, item.skips[1]))
    return max(found, key=lambda one: one[1])


def other_copies(origin: Origin, top: int, in_flight: int | None) -> tuple[Consequence, ...]:
    """Return what the sink has from another copy of this checkpoint, beyond batch `top`."""
    stateful = bool(origin.checkpoint.state_operators)
    newest, sink = origin.sink_newest, origin.sink
    return consequences.other_copies(newest, top, in_flight, sink, stateful)


def unnamed_sink(origin: Origin) -> tuple[str, ...]:
    """Return a note if the last start wrote to a file sink that the user did not name."""
    known = origin.sink
    if known is None or known.kind not in FILE_SINKS or known.path is None:
        return ()
    return (not_named(known.path),)


def fresh_identity() -> bytes:
    """Return `metadata` with a query id that no sink has seen.

    The id is random, and the plan contains it, so a saved plan keeps its own.
    """
    return render_metadata(new_metadata(str(uuid.uuid4())))


def open_origin(files: Files, location: str, batches: Collection[int] | None = None) -> Origin:
    """Read the origin; `batches` are needed besides the newest entries; None: all entries."""
    journal.refuse_unfinished(files)
    standing = fingerprint(files)
    listing = without_blocks(files, files.list())
    refuse_odd_content(files, listing)
    if batches is None:
        checkpoint = load_listed(files, listing, Entries.ALL)
    else:
        wanted = (*batch_ids(listing.files, COMMITS)[-1:], *batches)
        around = {number for batch in wanted for number in (batch - 1, batch)}
        checkpoint = load_listed(files, listing, Entries.NEWEST, around)
    if checkpoint.kind is Kind.DSTREAMS:
        raise _dstreams(files)
    checkpoint.refuse_not_given()
    _refuse_damaged(checkpoint)
    sizes = {file.path: file.size for file in listing.files}
    return Origin(location, files, checkpoint, standing, sink_of(latest_note(files)), sizes)


def _dstreams(files: Files) -> NotACheckpoint:
    return NotACheckpoint(
        f"{files.root} is a DStreams checkpoint: it cannot be changed",
        "It is the whole application as one Java object, with the offsets inside.",
        "`floodmark leave-dstreams` brings it over to Structured Streaming.",
    )


def refuse_dstreams(files: Files) -> None:
    if any(is_dstreams_checkpoint(name) for name in files.level().files):
        raise _dstreams(files)


def _refuse_damaged(checkpoint: Checkpoint) -> None:
    """Refuse if a file that every change copies is damaged: the copy would not start."""
    needed = {
        "metadata",
        f"{OFFSETS}/{checkpoint.latest_batch}",
        f"{COMMITS}/{checkpoint.committed_batch}",
    }
    broken = next((item for item in checkpoint.unreadable if item.path in needed), None)
    if broken:
        raise MalformedFile(
            f"{checkpoint.path}/{broken.path} cannot be read, so nothing can be moved from it",
            broken.reason,
            "`floodmark doctor CP` says what to do about it; a backup may hold the file.",
        )


def without_blocks(files: Files, listing: Listing) -> Listing:
    hidden = journal.blocks(files)
    kept: tuple[FileInfo, ...] = tuple(f for f in listing.files if f.path not in hidden)
    return Listing(kept, listing.complete, listing.unreadable)


def refuse_odd_content(files: Files, listing: Listing) -> None:
    """Refuse links and other odd files: a link may lead anywhere."""
    if listing.unreadable:
        path, reason = listing.unreadable[0]
        more = len(listing.unreadable) - 1
        raise Refused(
            f"{files.root}/{path}: {reason}" + (f" ({more} more are like it)" if more else ""),
            "A change would leave it out without a warning, or act on the link's target.",
            "Replace it by the file or folder itself, or remove it. `floodmark inspect CP` "
            "lists all of them.",
        )
