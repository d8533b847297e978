"""Provides `upgrade` and `copy`, which make a new checkpoint with the same state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from floodmark.api.arguments import (
    Storage,
    carrying_of,
    kept,
    require_spark_extra,
    script_options,
    several_of,
)
from floodmark.errors import WrongUse

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.apply import Carrying, Change
    from floodmark.changes.carry.origin import Origin
    from floodmark.changes.plan import Plan
    from floodmark.engine.code.code_sources import CodeSources


def upgrade(
    path: str,
    new: str,
    *,
    app: str | None = None,
    from_batch: int | None = None,
    new_identity: bool = False,
    restart_numbering: bool = False,
    drop_in_flight: bool = False,
    without_state: bool = False,
    map_topic: str | Iterable[str] = (),
    kafka: str | None = None,
    by_time: bool = False,
    old_kafka: str | None = None,
    source_kinds: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    accept: str | Iterable[str] = (),
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    read_data: bool = False,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Make a new checkpoint that begins exactly after the last committed batch.

    `settings` are values for the parameters of the pipeline in `app`; `arguments`, `query`,
    `py_files` and `script_limit` are for an `app` that is a script. `source_kinds` names sources
    whose offsets look like another kind's, `{"0": "eventhubs"}`; the sources of `app` also show it.
    """
    from floodmark.changes.apply import begin_new_place, plan_new_place
    from floodmark.changes.carry.resume_point import UpgradeOptions, choose_resume_point
    from floodmark.changes.carry.topic_names import parse_topics
    from floodmark.changes.named_places import absolute
    from floodmark.changes.planners.upgrade import plan_upgrade
    from floodmark.changes.sources.gone_input import require_input
    from floodmark.changes.sources.out_of_reach import OTHER_SOURCES, accepted
    from floodmark.checkpoint.source_kinds import with_said_kinds
    from floodmark.storage.untrusted_places import opener

    request = UpgradeOptions(
        from_batch,
        new_identity,
        restart_numbering,
        drop_in_flight,
        without_state,
        parse_topics(several_of(map_topic)),
        kafka,
        by_time,
        accepted(several_of(accept), OTHER_SOURCES),
        old_kafka,
    )
    if settings and app is None:
        raise WrongUse(
            f"--set {next(iter(settings))}: there is no application with this parameter",
            do="Name the application: --app APP.py[:PIPELINE].",
        )
    if app is not None:
        require_spark_extra(and_state=False)
    how = carrying_of(carrying, execute, wait, storage, read_data=read_data)

    def plan(origin: Origin) -> Plan:
        notes: tuple[str, ...] = ()
        asked = request
        told = with_said_kinds(origin.checkpoint, source_kinds or {})
        origin = replace(origin, checkpoint=told)
        if app is not None:
            from floodmark.engine.code.code_sources import require_sources
            from floodmark.engine.code.drawing import ApplicationCode

            script = script_options(arguments, query, py_files, script_limit)
            goal, topics = absolute(new), dict(request.map_topic)
            code = ApplicationCode(
                app, settings or {}, {}, script=script, checkpoints=(goal, origin.location)
            )
            said = tuple(source_kinds or ())
            judged = require_sources(code, origin, goal, topics, said, request.accept)
            origin, notes = _with_code(origin, judged), judged.notes
        if kafka is not None or by_time:
            from floodmark.changes.sources.kafka_cluster import ask_for_upgrade

            answer = ask_for_upgrade(origin, request)
            asked, notes = answer.request, (*notes, *answer.notes)
        made = plan_upgrade(origin, absolute(new), asked)
        point = choose_resume_point(origin.checkpoint, asked)
        opened = opener([origin.files.root], how.storage)
        notes = (*notes, *require_input(origin, asked, point, opened))
        if how.read_data:
            from floodmark.changes.read_data import read_state

            notes = (*notes, *read_state(origin, point.after))
        return replace(made, notes=(*notes, *made.notes))

    batches = () if from_batch is None else (from_batch,)
    made = plan_new_place(str(path), str(new), plan, how, batches)
    return kept(begin_new_place(made, how), how, out)


def _with_code(origin: Origin, judged: CodeSources) -> Origin:
    """Add what the code says about the sink, where no note does."""
    newest = judged.sink_newest if origin.sink_newest is None else origin.sink_newest
    sink = origin.sink or judged.sink
    return replace(origin, checkpoint=judged.checkpoint, sink=sink, sink_newest=newest)


def copy(
    path: str,
    dest: str,
    *,
    rehome: str | Iterable[str] = (),
    new_identity: bool = False,
    sink: str | None = None,
    read_data: bool = False,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Copy the checkpoint, and correct the absolute paths inside."""
    from floodmark.changes.apply import begin_new_place, open_sink, plan_new_place
    from floodmark.changes.carry.rehome import parse_moves
    from floodmark.changes.named_places import absolute
    from floodmark.changes.planners.copy import plan_copy
    from floodmark.changes.read_data import read_state

    how = carrying_of(carrying, execute, wait, storage, read_data=read_data)
    moves = parse_moves(several_of(rehome))

    def plan(origin: Origin) -> Plan:
        place = open_sink(sink, how) if moves else None
        made = plan_copy(origin, absolute(dest), moves, new_identity, place)
        batch = origin.checkpoint.committed_batch
        read = read_state(origin, batch) if how.read_data else ()
        return replace(made, notes=(*read, *made.notes))

    made = plan_new_place(str(path), str(dest), plan, how, ())
    return kept(begin_new_place(made, how), how, out)
