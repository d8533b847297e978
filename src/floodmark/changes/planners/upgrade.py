"""Plans `upgrade`: a new checkpoint that begins exactly after the last committed batch.

The in-flight batch is carried over uncommitted, so the new stream runs the same range again
under the same id and number. Sinks that already stored the batch skip it; others write it.
"""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.changes.carry.carried_state import (
    carry_in_flight_state,
    carry_state,
    describing_files,
)
from floodmark.changes.carry.origin import (
    Origin,
    fresh_identity,
    other_copies,
    sink_left_ahead,
)
from floodmark.changes.carry.resume_point import ResumePoint, UpgradeOptions, choose_resume_point
from floodmark.changes.carry.source_files import (
    Placed,
    carry_sources,
    refuse_first_snapshot,
    seed_sources,
    start_file,
    unplaced,
    unseeded,
)
from floodmark.changes.carry.topic_names import map_entry, require_topics
from floodmark.changes.plan import EMPTY, NEEDED, Consequence, Plan, Precondition
from floodmark.changes.plan.steps import Step, copy, write
from floodmark.changes.sinks import consequences
from floodmark.changes.sinks.consequences import Renumbering
from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, START_FILE
from floodmark.checkpoint.offsets import render_offsets, with_offset
from floodmark.checkpoint.source_kinds import refuse_disputed, unkept_kinds
from floodmark.checkpoint.start_note import last_start
from floodmark.connectors.sink_memory import goes_by_number
from floodmark.errors import WouldLose, WrongUse
from floodmark.redaction import shown_servers
from floodmark.storage.last_start import latest_note


def plan_upgrade(origin: Origin, new: str, options: UpgradeOptions) -> Plan:
    course = choose_resume_point(origin.checkpoint, options)
    if options.map_topic:
        newest = course.after if course.in_flight is None else course.in_flight
        assert newest is not None
        require_topics(origin.checkpoint.offsets[newest], dict(options.map_topic))
    if options.without_state:
        return _begin_anew(origin, new, options, course)
    _refuse_renumbered_state(origin, options, course)
    steps = (
        _identity(origin, options),
        *_logs(origin, options, course),
        *carry_sources(origin, course, dict(options.map_topic), new),
        *_state(origin, course, new),
    )
    notes = (*_notes(course), *unkept_kinds(origin.checkpoint))
    return _plan(origin, new, options, course, steps, course.top + 1, notes)


def _plan(
    origin: Origin,
    new: str,
    options: UpgradeOptions,
    course: ResumePoint,
    steps: tuple[Step, ...],
    block: int,
    notes: tuple[str, ...],
) -> Plan:
    after = "at the beginning" if course.after is None else f"after batch {course.after}"
    told = _consequences(origin, options, course)
    needed = {NEEDED: sorted({one.accept for one in told if one.accept})}
    return Plan(
        "upgrade",
        f"A new checkpoint that goes on {after}",
        origin.location,
        new,
        steps,
        (*origin.preconditions, Precondition(EMPTY, f"{new} holds nothing yet")),
        origin.standing.digest,
        origin.standing.words,
        block,
        {**_options(options), **(needed if needed[NEEDED] else {})},
        notes,
        told,
    )


def _options(options: UpgradeOptions) -> dict[str, object]:
    return {
        "from_batch": options.from_batch,
        "new_identity": options.new_identity,
        "restart_numbering": options.restart_numbering,
        "drop_in_flight": options.drop_in_flight,
        "without_state": options.without_state,
        "map_topic": [list(pair) for pair in options.map_topic],
        "kafka": shown_servers(options.kafka),
        "by_time": options.by_time,
        "old_kafka": shown_servers(options.old_kafka),
        "accept": list(options.accept),
    }


def _refuse_renumbered_state(origin: Origin, options: UpgradeOptions, course: ResumePoint) -> None:
    if not origin.checkpoint.state_operators:
        return
    if options.restart_numbering:
        raise WouldLose(
            "--restart-numbering: the state keeps its numbers, so the batches must as well",
            "Batch N starts from state version N; a stream that begins at 0 begins empty.",
            "Leave the option out, or begin with an empty state: --without-state.",
        )
    if course.shift and course.in_flight is not None:
        raise WouldLose(
            f"batch {course.in_flight} is in flight, and numbers before it are missing",
            "A stateful stream never skips numbers: entries of its offset log are lost.",
            "--drop-in-flight goes back to the last commit.",
        )


def _identity(origin: Origin, options: UpgradeOptions, always_new: bool = False) -> Step:
    metadata = origin.checkpoint.metadata
    if options.new_identity or always_new or metadata is None:
        fresh = fresh_identity()
        why = "a new query id: sinks do not know it"
        if metadata is None:
            why = "a new query id, for the old one is lost (`repair` may find it: do that first)"
        return write(METADATA, fresh, why)
    return copy(METADATA, "the same query id: sinks still know its batches", origin.size(METADATA))


def _logs(origin: Origin, options: UpgradeOptions, course: ResumePoint) -> Iterator[Step]:
    if course.after is not None and course.number is not None:
        before = course.after - 1
        if course.number > 0:
            why = "Spark wants the entry before, too"
            if before not in origin.checkpoint.offsets:
                before = course.after
            if before != course.number - 1:
                why += f": that of batch {before}"
            yield _entry(origin, options, before, course.number - 1, why)
            if before in origin.checkpoint.commit_ids:
                path = f"{COMMITS}/{before}"
                yield copy(f"{COMMITS}/{course.number - 1}", why, origin.size(path), path)
        why = "where the new stream starts"
        if course.number != course.after:
            why += f": the entry of batch {course.after}"
        yield _entry(origin, options, course.after, course.number, why)
        yield _commit(origin, course)
    if course.in_flight is not None:
        yield _entry(
            origin,
            options,
            course.in_flight,
            course.top,
            "the in-flight batch, to be run again over the same range",
        )


def _entry(origin: Origin, options: UpgradeOptions, batch: int, number: int, why: str) -> Step:
    entry = origin.checkpoint.offsets[batch]
    mapped = map_entry(entry, dict(options.map_topic))
    for source, text in options.moved_offsets:
        mapped = with_offset(mapped, source, text)
    if mapped == entry:
        path = f"{OFFSETS}/{batch}"
        return copy(f"{OFFSETS}/{number}", why, origin.size(path), path)
    how = "with the new cluster's offsets" if options.moved_offsets else "with its topics renamed"
    return write(f"{OFFSETS}/{number}", render_offsets(mapped), f"{why}, {how}")


def _commit(origin: Origin, course: ResumePoint) -> Step:
    why = "everything up to here is done"
    path = f"{COMMITS}/{course.after}"
    if course.has_commit:
        return copy(f"{COMMITS}/{course.number}", why, origin.size(path), path)
    return write(f"{COMMITS}/{course.number}", b"v1\n{}", "Spark 2.1 kept no commits; " + why)


def _state(origin: Origin, course: ResumePoint, new: str) -> Iterator[Step]:
    if not origin.checkpoint.state_operators:
        _refuse_lost_state(origin, course)
        return
    newest = course.after if course.in_flight is None else course.in_flight
    assert newest is not None
    yield from describing_files(origin, newest, new)
    carried: set[str] = set()
    if course.after is not None:
        for step in carry_state(origin, course.after, course.shift):
            carried.add(step.path)
            yield step
    if course.in_flight is not None:
        for step in carry_in_flight_state(origin, course.in_flight):
            if step.path not in carried:
                yield step


def _refuse_lost_state(origin: Origin, course: ResumePoint) -> None:
    """Refuse if state is lost: only the notes of the last start say that a query keeps state."""
    note = latest_note(origin.files)
    begun = (note or {}).get("next_batch")
    start = last_start(note)
    if course.after is None or start is None or not isinstance(begun, int) or begun > course.after:
        return  # that start has not committed a batch, so it may have left no state
    if start.tree is not None and start.tree.stateful:
        raise WouldLose(
            f"{origin.location}: its query keeps state, and state/ is gone",
            "The notes of the last start say so. Spark does not start on it either: batch "
            f"{course.after + 1} wants the state after batch {course.after}.",
            "Restore state/ from a backup, or begin with an empty state: --without-state.",
        )


def _notes(course: ResumePoint) -> tuple[str, ...]:
    notes = []
    if course.in_flight is not None:
        notes.append(
            f"The new stream first runs batch {course.top} again, over exactly the range that was "
            "planned."
        )
    elif course.after is not None and course.number is not None:
        notes.append(f"The new stream goes on with batch {course.number + 1}.")
    if course.shift > 0 and course.in_flight is None:
        notes.append(
            f"Numbers go on after {course.highest}: a sink may have seen batch "
            f"{course.highest}, and would skip that number whatever were in it."
        )
    return tuple(notes)


def _begin_anew(origin: Origin, new: str, options: UpgradeOptions, course: ResumePoint) -> Plan:
    """Plan an empty state, with which Spark begins at batch 0; only positions are carried."""
    if course.after is None:
        raise WrongUse(
            "--without-state: no batch is committed, so there is no place to begin after",
            do="Start the new stream with an empty checkpoint.",
        )
    refuse_disputed(origin.checkpoint, "--without-state")
    placed = Placed(course.after, dict(options.map_topic), dict(options.moved_offsets))
    refuse_first_snapshot(origin, placed)
    steps = (
        _identity(origin, options, always_new=True),
        *seed_sources(origin, placed),
        write(START_FILE, start_file(origin, placed), "for `floodmark run --start`"),
    )
    notes = [
        "The state is left behind: sums, windows and joins begin empty, at batch 0.",
        *unseeded(origin, course.after),
    ]
    if course.in_flight is not None:
        notes.append(
            f"Batch {course.in_flight} was in flight: its records are read again, under a new "
            f"number{', if the code begins there' if unplaced(origin, course.after) else ''}."
        )
    return _plan(origin, new, options, course, steps, 0, tuple(notes))


def _consequences(
    origin: Origin, options: UpgradeOptions, course: ResumePoint
) -> tuple[Consequence, ...]:
    told = _numbered(origin, options, course)
    if not (options.without_state or options.restart_numbering):
        copies = _other_copies(origin, options, course)
        told = (*sink_left_ahead(origin), *consequences.with_copies(copies, told))
    return (consequences.by_time(), *told) if options.moved_offsets else told


def _other_copies(
    origin: Origin, options: UpgradeOptions, course: ResumePoint
) -> tuple[Consequence, ...]:
    """Return what other copies did; only a sink that uses numbers confuses them with a new id."""
    new_id = options.new_identity or origin.checkpoint.metadata is None
    by_number = origin.sink is None or goes_by_number(origin.sink.kind)
    if new_id and not (by_number and origin.sink_newest is not None):
        return ()
    return other_copies(origin, course.top, course.in_flight)


def _numbered(
    origin: Origin, options: UpgradeOptions, course: ResumePoint
) -> tuple[Consequence, ...]:
    sink = origin.sink
    in_flight = course.in_flight
    if options.without_state or options.restart_numbering:
        new_id = options.without_state or options.new_identity or origin.checkpoint.metadata is None
        return consequences.restarted_numbers(
            Renumbering(
                0 if options.without_state or course.number is None else course.number + 1,
                course.highest,
                course.after,
                origin.checkpoint.in_flight_batch,
                new_id,
                bool(origin.checkpoint.state_operators),
            ),
            sink,
        )
    if course.after is not None and in_flight is None and course.highest > course.after:
        if course.highest == course.after + 1:
            return consequences.dropped_in_flight(course.highest, sink)
        return consequences.again(course.after, course.highest, sink)
    if options.new_identity or origin.checkpoint.metadata is None:
        return consequences.new_identity(in_flight, sink)
    return consequences.goes_on(in_flight, sink)
