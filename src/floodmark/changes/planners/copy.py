"""Plans `copy`: the checkpoint at another location, with the paths inside corrected."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.changes.carry.checkpoint_files import belonging
from floodmark.changes.carry.origin import (
    Origin,
    fresh_identity,
    other_copies,
    sink_left_ahead,
)
from floodmark.changes.carry.rehome import (
    Moves,
    is_operator_metadata,
    moved_note,
    moved_operator_metadata,
    moved_place,
    moved_schema_log,
    moved_source_log,
)
from floodmark.changes.carry.sink_log import SinkPlace, rehome_sink_log
from floodmark.changes.named_places import not_named
from floodmark.changes.plan import EMPTY, Consequence, Plan, Precondition
from floodmark.changes.plan.steps import Step, copy, write
from floodmark.changes.sinks import consequences
from floodmark.checkpoint.layout import METADATA, SOURCES, STARTS
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.connectors.files.input_files import file_sources
from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.errors import WrongUse


def plan_copy(
    origin: Origin,
    dest: str,
    moves: Moves = (),
    new_identity: bool = False,
    sink: SinkPlace | None = None,
) -> Plan:
    """Plan a copy; `sink` is the file sink's output folder."""
    led = tuple(rehome_sink_log(sink[1], moves)) if sink and moves else ()
    steps = (*_steps(origin, dest, moves, new_identity), *led)
    if moves and not any("files are where --rehome says" in step.why for step in steps):
        raise WrongUse(
            f"--rehome {moves[0][0]}: no file that this checkpoint knows lies there",
            "Its file sources list the input files, the file sink's log the output files.",
            "`floodmark files CP` lists the input; name the output's folder with --sink.",
        )
    newest = max((*origin.checkpoint.offset_ids, *origin.checkpoint.commit_ids), default=-1)
    return Plan(
        "copy",
        f"A copy of the checkpoint as it is: {origin.standing.words}",
        origin.location,
        dest,
        steps,
        (*origin.preconditions, Precondition(EMPTY, f"{dest} holds nothing yet")),
        origin.standing.digest,
        origin.standing.words,
        newest + 1,
        {
            "rehome": [list(pair) for pair in moves],
            "new_identity": new_identity,
            "sink": sink[0] if sink else None,
        },
        _moved_sink(origin, moves) if sink is None else _notes(sink, led),
        _consequences(origin, new_identity),
        sink=sink[0] if led and sink else None,
    )


def _moved_sink(origin: Origin, moves: Moves) -> tuple[str, ...]:
    """Return a note if --rehome moves the last start's output, but --sink does not name it."""
    known = origin.sink
    if known is None or known.kind not in FILE_SINKS or known.path is None:
        return ()
    place = moved_place(f"{known.path.rstrip('/')}/", moves)
    return (not_named(place.rstrip("/")),) if place is not None else ()


def _notes(sink: SinkPlace, led: tuple[Step, ...]) -> tuple[str, ...]:
    if not led:
        return ()
    return (
        f"The file sink's log in {sink[0]} is changed, too: the original query cannot go on "
        "writing there.",
    )


def _consequences(origin: Origin, new_identity: bool) -> tuple[Consequence, ...]:
    latest, in_flight = origin.checkpoint.latest_batch, origin.checkpoint.in_flight_batch
    told = _for_each_sink(origin, new_identity)
    if latest is not None and not new_identity:
        told = consequences.with_copies(other_copies(origin, latest, in_flight), told)
    return (*sink_left_ahead(origin), *told)


def _for_each_sink(origin: Origin, new_identity: bool) -> tuple[Consequence, ...]:
    in_flight = origin.checkpoint.in_flight_batch
    if new_identity:
        own = "the copy is a query of its own: give it its own sink"
        shared = consequences.new_identity(in_flight, origin.sink) if in_flight is not None else ()
        return (Consequence("every sink", own), *shared)
    one = Consequence(
        "every sink",
        "cannot tell the copy from the original: run only one of them, or copy with --new-identity",
    )
    shared = consequences.goes_on(in_flight, origin.sink) if in_flight is not None else ()
    return (one, *shared)


def _steps(origin: Origin, dest: str, moves: Moves, new_identity: bool) -> Iterator[Step]:
    logs = tuple(f"{SOURCES}/{source}/" for source in file_sources(origin.checkpoint))
    for file in belonging(origin.checkpoint.files):
        path = file.path
        if path == METADATA and new_identity:
            fresh = fresh_identity()
            yield write(path, fresh, "a new query id: the copy is a query of its own")
        elif is_operator_metadata(path):
            data = moved_operator_metadata(origin.read(path), dest)
            yield write(path, data, "the paths of its schemas lead to the copy")
        elif is_schema_log(path):
            yield write(
                path, moved_schema_log(origin.read(path), dest), "its path leads to the copy"
            )
        elif moves and path.startswith(logs) and logs:
            data, count = moved_source_log(origin.read(path), moves)
            why = f"{count} input files are where --rehome says"
            yield write(path, data, why) if count else copy(path, "as it is", file.size)
        elif moves and path.startswith(f"{STARTS}/"):
            data = origin.read(path)
            noted = moved_note(data, moves)
            why = "a note of a start; its folders are where --rehome says"
            yield write(path, noted, why) if noted != data else copy(path, "as it is", file.size)
        else:
            yield copy(path, "as it is", file.size)
