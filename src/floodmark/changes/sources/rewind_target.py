"""Finds where a rewind goes: to a batch, to given offsets, or to a time.

The log shows a time's batch. Where the log does not go back so far, the sources are asked.
"""

from __future__ import annotations

from dataclasses import replace

from floodmark.changes.carry.given_offsets import parse_given
from floodmark.changes.carry.origin import Origin
from floodmark.changes.plan.saved import bytes_of
from floodmark.changes.planners.rewind import (
    RewindOptions,
    RewindTarget,
    by_time,
    planned_at,
    to_batch,
    to_offsets,
)
from floodmark.changes.sources.earlier_positions import SourcesToAsk, offsets_at
from floodmark.changes.sources.kafka_cluster import ask_reach
from floodmark.changes.sources.out_of_reach import require_reach
from floodmark.checkpoint.source_kinds import refuse_disputed
from floodmark.checkpoint.views.position import choose_batch
from floodmark.errors import BatchPurged, WrongUse


def require_one_target(options: RewindOptions) -> None:
    given = (options.batch, options.at_ms, options.offsets_file)
    count = sum(one is not None for one in given)
    if count != 1:
        raise WrongUse(
            "rewind takes one of --to-batch, --to-time and --to-offsets",
            f"Each of them says where to go, and {count or 'none'} of them were given.",
            "Give exactly one; `floodmark batches CP` lists batches and their times.",
        )


def rewind_target(
    origin: Origin, options: RewindOptions, sources: SourcesToAsk, sink_ahead: bool
) -> RewindTarget:
    """Find the target; `sink_ahead`: the file sink's log has batches that the checkpoint lacks."""
    if options.batch is None or options.kafka is not None:
        # For times and offsets, the kind decides whom to ask, and what is skipped or repeated.
        refuse_disputed(origin.checkpoint, "rewind")
    target = _target(origin, options, sources, sink_ahead)
    if options.kafka is None:
        disputed = origin.checkpoint.disputed.items()
        said = (f"The kind of source {one} is not known. {why}" for one, why in disputed)
        return replace(target, notes=(*target.notes, *said))
    offsets = [origin.checkpoint.understood(*one) for one in target.entry.offsets]
    left = ask_reach(offsets, options.kafka, options.accept)
    return replace(target, notes=(*target.notes, *left))


def _target(
    origin: Origin, options: RewindOptions, sources: SourcesToAsk, sink_ahead: bool
) -> RewindTarget:
    if options.offsets_file is not None:
        file = options.offsets_file
        given = parse_given(bytes_of(file), origin.checkpoint, file)
        return replace(to_offsets(origin, given.texts), notes=given.notes)
    if options.batch is not None:
        return to_batch(origin, options.batch, sink_ahead=sink_ahead)
    at_ms = options.at_ms
    assert at_ms is not None
    try:
        batch = choose_batch(origin.checkpoint, None, at_ms)
    except BatchPurged:
        past = offsets_at(origin, at_ms, sources)
        notes = require_reach(past.reach, options.accept)
        return by_time(to_offsets(origin, past.offsets), at_ms, *notes)
    target = to_batch(origin, batch, "--to-time", sink_ahead)
    return by_time(target, at_ms, planned_at(origin, batch, at_ms))
