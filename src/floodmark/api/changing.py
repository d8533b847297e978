"""The verbs that change something: each returns a plan and executes it on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from floodmark.api.arguments import (
    Storage,
    carrying_of,
    kept,
    milliseconds,
    script_options,
    several_of,
)
from floodmark.errors import WrongUse
from floodmark.screen import Shown

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.carry.origin import Origin
    from floodmark.changes.sources.same_sources import Declared
    from floodmark.changes.verbs.carrying_out import Carrying, Change
    from floodmark.engine.app.options import ScriptOptions
    from floodmark.storage.repository import Damage, Snapshot


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
    """A new checkpoint that begins exactly after the last committed batch.

    `settings` are values for the parameters of the pipeline in `app`; `arguments`, `query`,
    `py_files` and `script_limit` are for an `app` that is a script.
    """
    from floodmark.changes.carry.resume_point import UpgradeOptions
    from floodmark.changes.carry.topics import parse_topics
    from floodmark.changes.sources.out_of_reach import accepted
    from floodmark.changes.verbs import carrying_out as verbs

    request = UpgradeOptions(
        from_batch,
        new_identity,
        restart_numbering,
        drop_in_flight,
        without_state,
        parse_topics(several_of(map_topic)),
        kafka,
        by_time,
        accepted(several_of(accept)),
        old_kafka,
    )
    if settings and app is None:
        raise WrongUse(
            f"--set {next(iter(settings))}: there is no application whose parameter it is",
            do="Name the application: --app APP.py[:PIPELINE].",
        )
    check = None
    if app is not None:
        places = (verbs.absolute(str(new)), verbs.absolute(str(path)))
        script = script_options(arguments, query, py_files, script_limit)
        check = _app_check(app, settings or {}, request.map_topic, script, places)
    how = carrying_of(carrying, execute, wait, storage, read_data=read_data)
    return kept(verbs.upgrade(str(path), str(new), request, how, check), how, out)


def _app_check(
    app: str,
    settings: Mapping[str, str],
    map_topic: tuple[tuple[str, str], ...],
    script: ScriptOptions,
    places: tuple[str, ...],
) -> Callable[[Origin], Sequence[str]]:
    from floodmark.changes.sources.same_sources import check_sources

    return lambda origin: check_sources(
        origin.checkpoint,
        _declared_sources(app, settings, script, places),
        app,
        dict(map_topic),
    )


def _declared_sources(
    app: str,
    settings: Mapping[str, str],
    script: ScriptOptions,
    places: tuple[str, ...],
) -> list[Declared]:
    """The sources of an application's one query, as Spark's analyser sees them."""
    from floodmark.changes.sources.same_sources import Declared
    from floodmark.engine.code.drawing import ApplicationCode
    from floodmark.engine.code.query import read_query

    with ApplicationCode(app, settings, {}, script=script, checkpoints=places).built() as found:
        return [
            Declared(source.kind, tuple(source.options.get("subscribe", "").split(",")))
            if source.options.get("subscribe")
            else Declared(source.kind)
            for source in read_query(found.writer).sources
        ]


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
    watch: float | str | None = None,
    read_data: bool = False,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """The same checkpoint, back at the end of an earlier batch, at a time or at given offsets."""
    from floodmark.changes.planners.rewind import RewindOptions
    from floodmark.changes.sources.out_of_reach import accepted
    from floodmark.changes.verbs import rewind as rewinding

    aim = RewindOptions(
        to_batch,
        milliseconds(to_time),
        to_offsets,
        keep_identity,
        sink,
        kafka,
        table,
        accepted(several_of(accept)),
    )
    how = carrying_of(carrying, execute, wait, storage, read_data=read_data, watch=watch)
    return kept(rewinding.rewind(str(path), aim, how), how, out)


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
    """A copy elsewhere, with the absolute paths inside corrected."""
    from floodmark.changes.verbs import carrying_out as verbs

    how = carrying_of(carrying, execute, wait, storage, read_data=read_data)
    change = verbs.copy(str(path), str(dest), several_of(rehome), new_identity, sink, how)
    return kept(change, how, out)


def backup(
    path: str,
    repository: str,
    *,
    keep_last: int | None = None,
    keep_daily: int | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A snapshot in a repository that holds every content once; a query may go on running."""
    from floodmark.changes.take_backup import Retention
    from floodmark.changes.verbs import snapshots

    how = carrying_of(carrying, execute, wait, storage)
    retention = Retention(keep_last, keep_daily)
    return kept(snapshots.back_up(str(path), str(repository), retention, how), how, out)


def check_backups(
    repository: str, storage: Storage | None = None
) -> tuple[int, tuple[Damage, ...]]:
    """How many snapshots a repository has, and which content of them is missing or damaged."""
    from floodmark.changes.verbs import snapshots

    return snapshots.check_repository(str(repository), storage)


def snapshots(repository: str, storage: Storage | None = None) -> tuple[Snapshot, ...]:
    """The snapshots of a repository, oldest first."""
    from floodmark.changes.verbs import snapshots

    return Shown(snapshots.list_snapshots(str(repository), storage))


def restore(
    repository: str,
    path: str,
    *,
    snapshot: str | None = None,
    keep_identity: bool = False,
    sink: str | None = None,
    accept: str | Iterable[str] = (),
    watch: float | str | None = None,
    read_data: bool = False,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A checkpoint as a snapshot has it, at the same or another place."""
    from floodmark.changes.carry.since_snapshot import RestoreOptions
    from floodmark.changes.sources.out_of_reach import accepted
    from floodmark.changes.verbs.snapshots import restore

    options = RestoreOptions(snapshot, accepted(several_of(accept)), keep_identity, sink)
    how = carrying_of(carrying, execute, wait, storage, read_data=read_data, watch=watch)
    return kept(restore(str(repository), str(path), options, how), how, out)


def apply(
    plan: str,
    *,
    sink: str | None = None,
    wait: float | str | None = None,
    read_data: bool = False,
    storage: Storage | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Carries out a saved plan, if everything is still as it was.

    `sink`: the file sink's folder, where the plan changes its log.
    """
    from floodmark.changes.verbs import carrying_out as verbs

    how = carrying_of(carrying, True, wait, storage, read_data=read_data)
    return verbs.apply_saved(str(plan), how, sink)


def resume(
    path: str,
    *,
    origin: str | None = None,
    sink: str | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    read_data: bool = False,
    storage: Storage | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Goes on with a change of this place that stopped midway.

    `origin`: the checkpoint or repository that it reads from, if that is another place; `sink`:
    the file sink's folder, where it changes its log.
    """
    from floodmark.changes.verbs import carrying_out as verbs

    how = carrying_of(carrying, execute, wait, storage, read_data=read_data)
    return kept(verbs.resume(str(path), how, origin, sink), how, None)


def undo(
    path: str,
    *,
    sink: str | None = None,
    accept: str | Iterable[str] = (),
    watch: float | str | None = None,
    execute: bool = False,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Takes back the last change of a checkpoint, whole or half done.

    `sink`: the file sink's folder, where the change has changed its log.
    """
    from floodmark.changes.verbs import carrying_out as verbs

    how = carrying_of(carrying, execute, None, storage, accept=accept, watch=watch)
    return kept(verbs.take_back(str(path), how, sink), how, out)


def forget(
    path: str,
    *,
    execute: bool = False,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Removes what changes have kept."""
    from floodmark.changes.verbs import carrying_out as verbs

    how = carrying_of(carrying, execute, None, storage)
    return kept(verbs.forget_kept(str(path), how), how, out)
