"""Provides `rewind`, which takes a checkpoint back to an earlier batch, time or offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage, carrying_of, kept, milliseconds, several_of
from floodmark.api.looking import with_kinds

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.apply import Carrying, Change
    from floodmark.changes.plan import Plan
    from floodmark.changes.planners.rewind import RewindOptions


def rewind(
    path: str,
    *,
    to_batch: int | None = None,
    to_time: datetime | str | None = None,
    to_offsets: str | None = None,
    keep_identity: bool = False,
    sink: str | None = None,
    kafka: str | None = None,
    table: str | None = None,
    accept: str | Iterable[str] = (),
    source_kinds: Mapping[str, str] | None = None,
    watch: float | str | None = None,
    read_data: bool = False,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Take the same checkpoint back to the end of an earlier batch, to a time or to given offsets.

    `source_kinds` names sources whose offsets look like another kind's: `{"0": "eventhubs"}`.
    """
    from floodmark.api.pipelines import applied_beside
    from floodmark.changes.named_places import absolute
    from floodmark.changes.planners.rewind import RewindOptions
    from floodmark.changes.sources.out_of_reach import accepted
    from floodmark.storage.files import open_files

    options = RewindOptions(
        to_batch,
        milliseconds(to_time),
        to_offsets,
        keep_identity,
        absolute(sink) if sink is not None else None,
        kafka,
        table,
        accepted(several_of(accept)),
    )
    how = carrying_of(carrying, execute, wait, storage, read_data=read_data, watch=watch)
    plan = _plan(absolute(path), options, how, source_kinds or {})
    files = open_files(absolute(path), how.storage)
    return kept(applied_beside(plan, files, how), how, out)


def _plan(
    location: str, options: RewindOptions, how: Carrying, source_kinds: Mapping[str, str]
) -> Plan:
    from floodmark.changes.apply import open_sink
    from floodmark.changes.carry.origin import open_origin
    from floodmark.changes.plan import seal
    from floodmark.changes.planners.rewind import plan_rewind, sink_is_ahead
    from floodmark.changes.read_data import read_state
    from floodmark.changes.same_change import repeated
    from floodmark.changes.sources.earlier_positions import SourcesToAsk
    from floodmark.changes.sources.gone_input import gone_input
    from floodmark.changes.sources.out_of_reach import require_reach
    from floodmark.changes.sources.rewind_target import require_one_target, rewind_target
    from floodmark.redaction import shown_servers
    from floodmark.storage.files import open_files
    from floodmark.storage.untrusted_places import opener

    require_one_target(options)
    files = open_files(location, how.storage)
    asked = {
        "to_batch": options.batch,
        "to_time_ms": options.at_ms,
        "keep_identity": options.keep_identity,
        "sink": options.sink,
    }
    if options.offsets_file is None:
        again = repeated(files, "rewind", location, location, asked)
        if again is not None:
            return again
    batches = None if options.at_ms is not None else ()
    origin = open_origin(files, location, batches if options.batch is None else (options.batch,))
    origin = replace(origin, checkpoint=with_kinds(origin.checkpoint, source_kinds))
    place = open_sink(options.sink, how)
    sources = SourcesToAsk(options.kafka, options.table, how.storage)
    target = rewind_target(origin, options, sources, sink_is_ahead(origin, place))
    plan = plan_rewind(origin, target, options.keep_identity, place)
    read = read_state(origin, target.batch) if how.read_data else ()
    opened = opener([location, options.sink], how.storage)
    gone = gone_input(files, origin.checkpoint, target.entry, opened, options.kafka is not None)
    notes = (*read, *plan.notes, *require_reach(gone, options.accept))
    said = {"kafka": shown_servers(options.kafka), "accept": list(options.accept)}
    return seal(replace(plan, options={**plan.options, **said}, notes=notes))
