"""`copy CP DEST`: a fork, or a move to other storage, with the paths inside made right."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.changes.belonging import belonging
from floodmark.changes.origin import Origin
from floodmark.changes.plan import EMPTY, Consequence, Plan, Precondition, Step, copy, write
from floodmark.changes.rehome import (
    Moves,
    is_operator_metadata,
    is_schema_log,
    moved_operator_metadata,
    moved_schema_log,
    moved_source_log,
)
from floodmark.checkpoint.inputs import file_sources
from floodmark.checkpoint.layout import METADATA, SOURCES
from floodmark.checkpoint.query import new_metadata, render_metadata
from floodmark.errors import WrongUse


def plan_copy(origin: Origin, dest: str, moves: Moves = (), new_identity: bool = False) -> Plan:
    steps = tuple(_steps(origin, dest, moves, new_identity))
    if moves and not any("input files" in step.why for step in steps):
        raise WrongUse(
            f"--rehome {moves[0][0]}: no input file of this checkpoint lies there",
            do="`floodmark files CP` lists them.",
        )
    newest = max((*origin.checkpoint.offset_ids, *origin.checkpoint.commit_ids), default=-1)
    return Plan(
        "copy",
        f"A copy that stands where the checkpoint does: {origin.standing.words}",
        origin.location,
        dest,
        steps,
        (*origin.preconditions, Precondition(EMPTY, f"{dest} holds nothing yet")),
        origin.standing.digest,
        origin.standing.words,
        newest + 1,
        {"rehome": [list(pair) for pair in moves], "new_identity": new_identity},
        (),
        _consequences(new_identity),
    )


def _consequences(new_identity: bool) -> tuple[Consequence, ...]:
    if new_identity:
        return (Consequence("every sink", "the copy is a query of its own: give it its own sink"),)
    return (
        Consequence(
            "every sink",
            "takes the copy for the original: run one of the two. --new-identity makes a fork",
        ),
    )


def _steps(origin: Origin, dest: str, moves: Moves, new_identity: bool) -> Iterator[Step]:
    logs = tuple(f"{SOURCES}/{source}/" for source in file_sources(origin.checkpoint))
    for file in belonging(origin.checkpoint.files):
        path = file.path
        if path == METADATA and new_identity:
            fresh = render_metadata(new_metadata(origin.new_id(dest)))
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
        else:
            yield copy(path, "as it is", file.size)
