"""Plans `bootstrap`: a first checkpoint that already has state.

Batch 0 is written as a batch that read nothing. Spark then runs batch 1 from the state of
batch 0, and asks each source where it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from floodmark.changes.carry.origin import fresh_identity
from floodmark.changes.plan import EMPTY, Plan, Precondition
from floodmark.changes.plan.steps import Step, rewrite, write
from floodmark.changes.planners.kept_operators import Drawn
from floodmark.changes.planners.migrate import describing, goal_of, unique_ids_of
from floodmark.checkpoint.commits import CommitEntry, render_commit, with_state_ids
from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, SOURCES
from floodmark.checkpoint.offsets import OffsetEntry, render_offsets, with_offset
from floodmark.connectors.source import render_json
from floodmark.statestore.rewrite.target import StateTarget

VERSION = 1
_LISTED = '{"logOffset":0}'


@dataclass(frozen=True)
class FirstBatch:
    """The batch without rows as Spark wrote it, and where the sources begin."""

    offsets: OffsetEntry
    commit: CommitEntry
    kafka: Mapping[str, Mapping[str, Any]]
    """The offsets that a start file gives to each source."""
    notes: tuple[str, ...] = ()
    seen: Mapping[str, bytes] = field(default_factory=dict)
    """The list of the files that are already read, by file source."""


def plan_bootstrap(
    new: str,
    drawn: Drawn,
    first: FirstBatch,
    given: Sequence[tuple[int, str]],
    options: Mapping[str, Any],
) -> Plan:
    goals = tuple(_goals(new, drawn, first, frozenset(given)))
    entry = first.offsets
    for source, _ in entry.offsets:
        # The list's first entry counts as read: what Spark adds to it comes after.
        entry = with_offset(entry, source, _LISTED if source in first.seen else None)
    steps = (
        write(METADATA, fresh_identity(), "a new query"),
        write(f"{OFFSETS}/0", render_offsets(entry), "a first batch that read nothing"),
        _commit(first.commit, goals),
        *_sources(first),
        *describing(drawn, new),
        *(rewrite(one, _why(one)) for one in goals),
    )
    empty = [str(one.operator) for one in goals if not any(part.given for part in one.parts)]
    notes = [f"Operator {number} starts empty." for number in empty]
    notes.append("The stream goes on with batch 1, from where its sources begin.")
    notes += first.notes
    return Plan(
        "bootstrap",
        "A first checkpoint, with state in it",
        new,
        new,
        steps,
        (Precondition(EMPTY, f"{new} holds nothing yet"),),
        "",
        "nothing",
        1,
        options,
        tuple(notes),
    )


def _why(goal: StateTarget) -> str:
    names = [part.name for part in goal.parts if part.given]
    return "the rows that were given" if names else "an empty state"


def _goals(
    new: str, drawn: Drawn, first: FirstBatch, given: frozenset[tuple[int, str]]
) -> Iterator[StateTarget]:
    conf = first.offsets.metadata.conf if first.offsets.metadata else {}
    for kept in drawn.operators:
        goal = goal_of(kept, conf, 0, VERSION)
        number = kept.operator.number
        parts = tuple(replace(part, given=(number, part.name) in given) for part in goal.parts)
        ids = unique_ids_of(new, kept, VERSION) if first.commit.state_unique_ids else None
        zips = drawn.zip_version if ids is not None else 1
        yield replace(goal, parts=parts, unique_ids=ids, zip_version=zips)


def _commit(commit: CommitEntry, goals: tuple[StateTarget, ...]) -> Step:
    ids = {one.operator: one.unique_ids for one in goals if one.unique_ids is not None}
    if ids:
        commit = with_state_ids(commit, ids)
    return write(f"{COMMITS}/0", render_commit(commit), "its state is version 1")


def _sources(first: FirstBatch) -> Iterator[Step]:
    for source, offsets in first.kafka.items():
        yield write(
            f"{SOURCES}/{source}/0",
            b"\0v1\n" + render_json(offsets).encode(),
            "where the stream begins; startingOffsets of the code does not matter",
        )
    for source, data in first.seen.items():
        yield write(f"{SOURCES}/{source}/0", data, "the files that are read already")
