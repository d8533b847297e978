"""Plans `rewind`: the same checkpoint, back at the end of an earlier batch, or at given offsets.

Batches that run again have numbers that sinks already know, with other records in them. So the
query gets a new id, and sinks that remember (query, batch) write the batches again. The file
sink's log remembers only numbers, so it goes back as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from floodmark.changes import journal
from floodmark.changes.carry.checkpoint_files import with_checksums
from floodmark.changes.carry.given_offsets import compare
from floodmark.changes.carry.going_back import later_batches, later_starts, later_state
from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.carry.origin import Origin, file_sink_left_at, fresh_identity, unnamed_sink
from floodmark.changes.carry.resume_point import require_committed
from floodmark.changes.carry.sink_log import SinkPlace, Trim, trim_sink_log
from floodmark.changes.plan import NEEDED, Plan
from floodmark.changes.plan.steps import Step, delete, write
from floodmark.changes.sinks import FILES, Consequences, consequences, read_again
from floodmark.changes.sinks.read_again import Again
from floodmark.changes.sources.out_of_reach import SKIPS
from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, SOURCES, names_in, side_file
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import OffsetEntry, render_offsets, with_offset
from floodmark.checkpoint.text import moment
from floodmark.connectors.files.file_log import log_id
from floodmark.connectors.files.offset import FILE_SINKS, parse_log_offset
from floodmark.connectors.registry import about
from floodmark.connectors.source import parse_offset_text
from floodmark.errors import NoAnswer, WouldLose, WrongUse
from floodmark.storage.last_start import start_batches


@dataclass(frozen=True)
class RewindOptions:
    """The options of a rewind. Exactly one of batch, time and offsets is given."""

    batch: int | None = None
    at_ms: int | None = None
    offsets_file: str | None = None
    keep_identity: bool = False
    sink: str | None = None
    kafka: str | None = None
    """The cluster to ask: for a time beyond the log, and whether it still has what comes next."""
    table: str | None = None
    """The Delta table to ask for a time beyond the log."""
    accept: tuple[str, ...] = ()


@dataclass(frozen=True)
class RewindTarget:
    batch: int
    entry: OffsetEntry
    """The new content of offsets/<batch>."""
    options: Mapping[str, Any]
    moved: bool = False
    """True where given offsets replace those of the batch."""
    notes: tuple[str, ...] = ()
    back: bool = False
    """True where some of the given offsets are before those of the batch."""
    forward: tuple[str, ...] = ()
    """Sentences about records that are never read with the given offsets."""
    sink_only: bool = False
    """True where only the file sink's log goes back: the checkpoint is already at that batch."""


def sink_is_ahead(origin: Origin, sink: SinkPlace | None) -> bool:
    """Whether the file sink's log has numbers that will be used again, after an earlier rewind."""
    latest = origin.checkpoint.latest_batch
    return sink is not None and latest is not None and bool(trim_sink_log(sink[1], latest).steps)


def to_batch(
    origin: Origin, batch: int, option: str = "--to-batch", sink_ahead: bool = False
) -> RewindTarget:
    require_committed(origin.checkpoint, batch, option)
    stands_there = batch == origin.checkpoint.latest_batch
    if stands_there and sink_ahead:
        return RewindTarget(
            batch, origin.checkpoint.offsets[batch], {"to_batch": batch}, sink_only=True
        )
    if stands_there:
        raise NoAnswer(
            f"{origin.location} stands at the end of batch {batch} already",
            "There is nothing after it to take back.",
            "`floodmark batches CP` lists the earlier ones.",
        )
    return RewindTarget(batch, origin.checkpoint.offsets[batch], {"to_batch": batch})


def to_offsets(origin: Origin, given: Mapping[str, str]) -> RewindTarget:
    """Replace the offsets of the last committed batch by given ones, by source."""
    checkpoint = origin.checkpoint
    batch = checkpoint.committed_batch
    if batch is None:
        raise NoAnswer(
            f"{origin.location}: no batch is committed, so no offset can be moved",
            "A stream that has finished no batch begins where its code says.",
            "Start it with an empty checkpoint, and with the option of its source.",
        )
    require_committed(checkpoint, batch, "--to-offsets")
    if checkpoint.state_operators:
        raise WouldLose(
            "--to-offsets: this stream has state, and state belongs to the batch it was made by",
            "Records that are read again would be counted again; skipped records would be missing.",
            "Rewind to a batch, whose state is still there: --to-batch N.",
        )
    _refuse_unseen_files(checkpoint, given)
    entry = checkpoint.offsets[batch]
    for source, text in given.items():
        entry = with_offset(entry, source, text)
    if entry == checkpoint.offsets[batch] and batch == checkpoint.latest_batch:
        raise NoAnswer(
            f"{origin.location} stands at these offsets already",
            do="`floodmark offsets CP --json` shows where it stands.",
        )
    moves = [compare(was, given[was.id]) for was in checkpoint.sources_of(batch) if was.id in given]
    return RewindTarget(
        batch,
        entry,
        {"to_offsets": dict(given)},
        moved=True,
        back=any(move.back for move in moves),
        forward=tuple(words for move in moves for words in move.forward),
    )


def _refuse_unseen_files(checkpoint: Checkpoint, given: Mapping[str, str]) -> None:
    """Refuse an offset beyond a file source's list; its offset is the number of an entry there."""
    for source in checkpoint.sources:
        if not about(source).lists_files or source.id not in given:
            continue
        names = names_in(checkpoint.files, f"{SOURCES}/{source.id}")
        newest = max((at for name in names if (at := log_id(name)) is not None), default=-1)
        wanted = parse_log_offset(parse_offset_text(given[source.id]))
        if wanted > newest:
            raise WrongUse(
                f"--to-offsets: source {source.id} has no entry {wanted} in its list of files",
                f"The newest one is {newest}.",
                f"Give {newest} or less; `floodmark files CP` lists the files.",
            )


def plan_rewind(
    origin: Origin, goal: RewindTarget, keep_identity: bool = False, sink: SinkPlace | None = None
) -> Plan:
    checkpoint = origin.checkpoint
    if checkpoint.state_operators:
        needed_state(checkpoint, goal.batch, origin.read)  # raises where it is not whole
    trim = trim_sink_log(sink[1], goal.batch) if sink else Trim(())
    highest = max(*checkpoint.offset_ids, *checkpoint.commit_ids)
    steps = (
        *_removals(origin, goal.batch),
        *_entries(origin, goal),
        *_identity(origin, goal, keep_identity),
        *trim.steps,
    )
    told = _consequences(
        origin,
        goal,
        max(highest, trim.until) if goal.sink_only else highest,
        keep_identity,
        bool(sink) and not trim.words,
    )
    planned = max(highest, *_once_planned(origin))
    if trim.steps and trim.until > planned:
        told = (read_again.trimmed_too_far(goal.batch, planned, trim.until), *told)
    known = origin.sink is not None and origin.sink.kind in FILE_SINKS
    if (sink is None and known) or (trim.words and trim.until > goal.batch):
        told = _skips_accepted_by_name(told)
    return Plan(
        "rewind",
        _title(goal),
        origin.location,
        origin.location,
        steps,
        origin.preconditions,
        origin.standing.digest,
        origin.standing.words,
        highest + 1,
        {
            **goal.options,
            "keep_identity": keep_identity,
            "sink": sink[0] if sink else None,
            NEEDED: sorted({item.accept for item in told if item.accept}),
        },
        (
            *(unnamed_sink(origin) if sink is None else ()),
            *_notes(origin, goal, keep_identity, trim),
        ),
        told,
        sink=sink[0] if sink and trim.steps else None,
    )


def _consequences(
    origin: Origin, goal: RewindTarget, highest: int, keep_identity: bool, trimmed: bool
) -> Consequences:
    stateful = bool(origin.checkpoint.state_operators)
    _, left_at = file_sink_left_at(origin)
    again = Again(
        goal.batch,
        highest,
        trimmed,
        keep_identity,
        goal.back,
        stateful=stateful,
        left_at=left_at,
    )
    told = read_again.reads_again(again, origin.sink)
    told = (*(consequences.never_read(words) for words in goal.forward), *told)
    if goal.sink_only:
        return tuple(item for item in told if item.sink == FILES)
    return told


def _once_planned(origin: Origin) -> Iterator[int]:
    """Yield how far the checkpoint had come before each change that took it back."""
    yield -1
    for record in journal.read_records(origin.files):
        if record.plan.in_place:
            yield record.plan.block - 1


def _skips_accepted_by_name(told: Consequences) -> Consequences:
    """Make skipped batches need acceptance, as the file sink's log stays as it is."""
    return tuple(
        replace(item, accept=SKIPS) if item.sink == FILES and item.skips else item for item in told
    )


def _title(goal: RewindTarget) -> str:
    if goal.sink_only:
        return f"The file sink's log, back to the end of batch {goal.batch} like the checkpoint"
    if goal.moved:
        return f"To the given offsets, which batch {goal.batch + 1} begins at"
    return f"Back to the end of batch {goal.batch}"


def _removals(origin: Origin, batch: int) -> Iterator[Step]:
    for path, why in (
        *later_batches(origin.checkpoint, batch, f"everything after batch {batch} goes"),
        *later_state(origin.checkpoint, batch),
        *later_starts(start_batches(origin.files), batch),
    ):
        for name in with_checksums(path, origin.sizes):
            yield delete(name, why)


def _entries(origin: Origin, goal: RewindTarget) -> Iterator[Step]:
    before = goal.batch - 1
    data = render_offsets(goal.entry)
    if goal.moved:
        why = "where the next batch begins"
        # A source of the old interface gets the range between the two entries, which must not
        # run backwards.
        for number in (before, goal.batch) if before >= 0 else (goal.batch,):
            yield from _rewrite(origin, f"{OFFSETS}/{number}", data, why)
    elif before >= 0 and before not in origin.checkpoint.offset_ids:
        why = f"Spark wants the entry before, and the log lacks it: that of batch {goal.batch}"
        yield from _rewrite(origin, f"{OFFSETS}/{before}", data, why)
        done = origin.read(f"{COMMITS}/{goal.batch}")
        yield from _rewrite(origin, f"{COMMITS}/{before}", done, f"{why}; it was done")


def _rewrite(origin: Origin, path: str, data: bytes, why: str) -> Iterator[Step]:
    if side_file(path) in origin.sizes:
        yield delete(side_file(path), "the checksum of what is replaced")
    yield write(path, data, why, replaces=path in origin.sizes)


def _identity(origin: Origin, goal: RewindTarget, keep_identity: bool) -> Iterator[Step]:
    if keep_identity or goal.sink_only:
        return
    why = "a new query id: sinks that remember the old one would skip the batches"
    yield from _rewrite(origin, METADATA, fresh_identity(), why)


def _notes(origin: Origin, goal: RewindTarget, keep_identity: bool, trim: Trim) -> tuple[str, ...]:
    notes = [*goal.notes, f"The stream goes on with batch {goal.batch + 1}."]
    if any(about(one).lists_files for one in origin.checkpoint.sources_of(goal.batch)):
        notes.append(
            "The file source's own list is not taken back: its next batch takes all files that "
            "are listed already at once, whatever maxFilesPerTrigger says."
        )
    if keep_identity:
        notes.append(
            "--keep-identity: a sink that remembers (query, batch) SKIPS the batches it has, "
            "whatever is in them now."
        )
    if trim.words:
        notes.append(f"The file sink's log stays as it is: {trim.words}.")
    return tuple(notes)


def by_time(goal: RewindTarget, at_ms: int, *notes: str) -> RewindTarget:
    """Return the target with the time that it was found by."""
    options = {"to_time_ms": at_ms, "to_time": moment(at_ms)}
    return replace(goal, options={**options, **_offsets_of(goal)}, notes=notes)


def _offsets_of(goal: RewindTarget) -> Mapping[str, Any]:
    return goal.options if goal.moved else {}


def planned_at(origin: Origin, batch: int, at_ms: int) -> str:
    metadata = origin.checkpoint.offsets[batch].metadata
    time_ms = metadata.batch_timestamp_ms if metadata else None
    own = f", at {moment(time_ms)}" if time_ms is not None else ""
    return f"Batch {batch} is the last that was planned by {moment(at_ms)}{own}."
