"""Provides the verbs that repair a checkpoint or make it smaller: `repair` and `compact`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage, carrying_of, kept, require_state_extra, several_of
from floodmark.api.repository import open_backups

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.apply import Carrying, Change
    from floodmark.checkpoint.evidence import Evidence
    from floodmark.connectors.live import Open
    from floodmark.rules.finding import Finding
    from floodmark.storage.files import Files


def repair(
    path: str,
    *,
    accept: str | Iterable[str] = (),
    sink: str | None = None,
    from_backup: str | None = None,
    table: str | None = None,
    read_data: bool = False,
    watch: float | str | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Make the smallest safe repair for each of the doctor's findings that has one.

    `table` is the Iceberg table that the stream reads; it is asked, as by `doctor`.
    """
    from floodmark.api.pipelines import applied_beside
    from floodmark.changes import journal
    from floodmark.changes.apply import open_sink
    from floodmark.changes.carry.origin import refuse_dstreams, refuse_odd_content
    from floodmark.changes.fingerprint import fingerprint
    from floodmark.changes.named_places import absolute
    from floodmark.changes.plan import seal
    from floodmark.changes.planners.repair import RepairOptions, mend, plan_repair
    from floodmark.changes.repair.from_backup import Backup
    from floodmark.changes.repair.working_copy import WorkingCopy
    from floodmark.changes.sinks.known_sink import known_sink
    from floodmark.storage.files import open_files
    from floodmark.storage.last_start import latest_note
    from floodmark.storage.repository import snapshots
    from floodmark.storage.untrusted_places import opener

    if read_data:
        require_state_extra()
    how = carrying_of(carrying, execute, wait, storage, watch=watch)
    location = absolute(path)
    files = open_files(location, how.storage)
    refuse_dstreams(files)
    journal.refuse_unfinished(files)
    refuse_odd_content(files, files.list())
    standing = fingerprint(files)
    opened = opener([location, sink, from_backup, table], how.storage)
    known = known_sink(latest_note(files), open_sink(sink, how), opened)
    repository = absolute(from_backup) if from_backup is not None else None
    backup = None
    if repository is not None:
        stored = open_backups(repository, how.storage)
        backup = Backup(stored, reversed(snapshots(stored)))
    doctor = partial(_doctor, table, opened)
    work = WorkingCopy(files, doctor, known, read_data, opened)
    mend(work, backup)
    work.refuse_not_given()
    options = RepairOptions(several_of(accept), sink, read_data, repository)
    plan = seal(plan_repair(work, location, standing, options))
    return kept(applied_beside(plan, files, how), how, out)


def _doctor(
    table: str | None, opened: Open, files: Files, read_data: bool
) -> tuple[Evidence, tuple[Finding, ...]]:
    from floodmark.changes.sources.asking import ask_table
    from floodmark.diagnosis.gather import gather
    from floodmark.rules.registry import examine

    evidence = gather(files, 1.0 if read_data else None)
    if table is not None:
        evidence = replace(evidence, outside=ask_table(files, evidence, table, opened))
    return evidence, examine(evidence)


def compact(
    path: str,
    *,
    keep: int | None = None,
    sink: str | None = None,
    accept: str | Iterable[str] = (),
    watch: float | str | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Remove files that neither a start nor going back to a kept batch needs."""
    from floodmark.changes.apply import apply_if_asked, open_sink
    from floodmark.changes.carry.origin import open_origin
    from floodmark.changes.named_places import absolute
    from floodmark.changes.plan import seal
    from floodmark.changes.planners.compact import plan_compact, retained
    from floodmark.storage.files import open_files
    from floodmark.storage.last_start import latest_note

    how = carrying_of(carrying, execute, wait, storage, accept=accept, watch=watch)
    location = absolute(path)
    files = open_files(location, how.storage)
    origin = open_origin(files, location)
    number = retained(keep, latest_note(files))
    plan = seal(plan_compact(origin, number, open_sink(sink, how)))
    return kept(apply_if_asked(plan, how), how, out)
