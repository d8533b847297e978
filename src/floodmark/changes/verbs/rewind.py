"""Builds and executes the plan of `rewind`: by batch, by time, by offsets."""

from __future__ import annotations

from dataclasses import replace

from floodmark.changes.carry.given_offsets import parse_given
from floodmark.changes.carry.origin import Origin, open_origin
from floodmark.changes.plan import seal
from floodmark.changes.planners.rewind import (
    RewindOptions,
    RewindTarget,
    by_time,
    plan_rewind,
    planned_at,
    sink_is_ahead,
    to_batch,
    to_offsets,
)
from floodmark.changes.sources.earlier_positions import SourcesToAsk, offsets_at
from floodmark.changes.sources.gone_input import gone_input
from floodmark.changes.sources.kafka_cluster import ask_reach
from floodmark.changes.sources.out_of_reach import require_reach
from floodmark.changes.verbs.carrying_out import (
    Carrying,
    Change,
    absolute,
    bytes_of,
    carried,
    place_of_sink,
    read_state,
    repeated,
    unnamed_sink,
)
from floodmark.checkpoint.position import choose_batch
from floodmark.connectors.registry import read_source_offset
from floodmark.connectors.source import SourceOffset
from floodmark.errors import BatchPurged, WrongUse
from floodmark.redaction import shown_servers
from floodmark.storage.files import open_files
from floodmark.storage.noted_places import opener


def rewind(path: str, aim: RewindOptions, carrying: Carrying) -> Change:
    chosen = [one for one in (aim.batch, aim.at_ms, aim.offsets_file) if one is not None]
    if len(chosen) != 1:
        raise WrongUse(
            "rewind takes one of --to-batch, --to-time and --to-offsets",
            f"Each of them says where to go, and {len(chosen) or 'none'} of them were given.",
            "Give exactly one; `floodmark batches CP` lists batches and their times.",
        )
    files = open_files(absolute(path), carrying.storage)
    location, sink = absolute(path), absolute(aim.sink) if aim.sink is not None else None
    asked = {
        "to_batch": aim.batch,
        "to_time_ms": aim.at_ms,
        "keep_identity": aim.keep_identity,
        "sink": sink,
    }
    if aim.offsets_file is None and (again := repeated(files, "rewind", location, location, asked)):
        return carried(again, carrying)
    batches = (aim.batch,) if aim.batch is not None else None if aim.at_ms is not None else ()
    origin = open_origin(files, location, batches)
    place = place_of_sink(sink, carrying) if sink is not None else None
    goal = _goal(origin, aim, carrying, sink_is_ahead(origin, place))
    plan = plan_rewind(origin, goal, aim.keep_identity, place)
    read = read_state(origin, goal.batch, carrying)
    gone = gone_input(
        files,
        origin.checkpoint,
        goal.entry,
        opener([location, sink], carrying.storage),
        aim.kafka is not None,
    )
    unnamed = unnamed_sink(origin) if sink is None else ()
    notes = (*read, *unnamed, *plan.notes, *require_reach(gone, aim.accept))
    options = {**plan.options, "kafka": shown_servers(aim.kafka), "accept": list(aim.accept)}
    return carried(seal(replace(plan, options=options, notes=notes)), carrying)


def _goal(origin: Origin, aim: RewindOptions, carrying: Carrying, sink_ahead: bool) -> RewindTarget:
    if aim.offsets_file is not None:
        given = parse_given(bytes_of(aim.offsets_file), origin.checkpoint, aim.offsets_file)
        goal = to_offsets(origin, given)
    elif aim.batch is not None:
        goal = to_batch(origin, aim.batch, sink_ahead=sink_ahead)
    else:
        assert aim.at_ms is not None
        goal = _goal_by_time(origin, aim, aim.at_ms, carrying, sink_ahead)
    if aim.kafka is None:
        return goal
    left = ask_reach(_sources_at(origin, goal), aim.kafka, aim.accept)
    return replace(goal, notes=(*goal.notes, *left))


def _goal_by_time(
    origin: Origin, aim: RewindOptions, at_ms: int, carrying: Carrying, sink_ahead: bool
) -> RewindTarget:
    """By the log where it reaches so far; beyond it the sources are asked."""
    try:
        batch = choose_batch(origin.checkpoint, None, at_ms)
    except BatchPurged:
        past = offsets_at(origin, at_ms, SourcesToAsk(aim.kafka, aim.table, carrying.storage))
        notes = require_reach(past.reach, aim.accept)
        return by_time(to_offsets(origin, past.offsets), at_ms, *notes)
    goal = to_batch(origin, batch, "--to-time", sink_ahead)
    return by_time(goal, at_ms, planned_at(origin, batch, at_ms))


def _sources_at(origin: Origin, goal: RewindTarget) -> list[SourceOffset]:
    return [read_source_offset(name, text) for name, text in goal.entry.offsets]
