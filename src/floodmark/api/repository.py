"""Provides the verbs of the backup repository: `backup`, `restore`, and its content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage, carrying_of, kept, several_of
from floodmark.screen import Shown

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.apply import Carrying, Change
    from floodmark.changes.carry.since_snapshot import RestoreOptions
    from floodmark.changes.plan import Plan
    from floodmark.storage.files import Files
    from floodmark.storage.repository import Damage, Snapshot


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
    """Take a snapshot into a repository that stores each content once; a query may keep running."""
    from floodmark.changes.apply_saved import back_up
    from floodmark.changes.named_places import absolute, refuse_overlap
    from floodmark.changes.plan import seal
    from floodmark.changes.planners.backup import plan_backup
    from floodmark.storage.files import open_files

    how = carrying_of(carrying, execute, wait, storage)
    refuse_overlap(str(path), str(repository))
    files = open_files(absolute(path), how.storage)
    options: dict[str, object] = {"keep_last": keep_last, "keep_daily": keep_daily}
    plan = plan_backup(files, absolute(path), absolute(repository), options)
    return kept(back_up(seal(plan), how), how, out)


def check_backups(
    repository: str, storage: Storage | None = None
) -> tuple[int, tuple[Damage, ...]]:
    """Return the number of snapshots, and their missing or damaged contents."""
    from floodmark.storage.repository import check, snapshots

    files = open_backups(repository, storage)
    return len(snapshots(files)), check(files)


def snapshots(repository: str, storage: Storage | None = None) -> tuple[Snapshot, ...]:
    """List the snapshots of a repository, oldest first."""
    from floodmark.storage.repository import snapshots

    return Shown(snapshots(open_backups(repository, storage)))


def open_backups(location: str, storage: Storage | None) -> Files:
    """Open an existing repository; this writes nothing to it."""
    from floodmark.changes.named_places import absolute
    from floodmark.storage.files import open_files
    from floodmark.storage.repository import open_repository

    files = open_files(absolute(location), storage)
    open_repository(files)
    return files


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
    """Restore a checkpoint from a snapshot, at the same or another location."""
    from floodmark.changes.apply import apply_if_asked
    from floodmark.changes.carry.since_snapshot import RestoreOptions
    from floodmark.changes.named_places import absolute, refuse_overlap
    from floodmark.changes.sources.out_of_reach import accepted

    named = absolute(sink) if sink is not None else None
    options = RestoreOptions(snapshot, accepted(several_of(accept)), keep_identity, named)
    how = carrying_of(carrying, execute, wait, storage, read_data=read_data, watch=watch)
    refuse_overlap(str(repository), str(path))
    plan = _plan_restore(absolute(repository), absolute(path), options, how)
    return kept(apply_if_asked(plan, how), how, out)


def _plan_restore(repository: str, goal: str, options: RestoreOptions, how: Carrying) -> Plan:
    from floodmark.changes import journal
    from floodmark.changes.carry.since_snapshot import look_since
    from floodmark.changes.plan import seal
    from floodmark.changes.planners.restore import plan_restore, restores
    from floodmark.changes.same_change import repeated
    from floodmark.storage.files import open_files
    from floodmark.storage.repository import choose_snapshot
    from floodmark.storage.untrusted_places import opener

    files = open_backups(repository, how.storage)
    target = open_files(goal, how.storage)
    chosen = choose_snapshot(files, options.snapshot)
    asked = {
        "snapshot": chosen.id,
        "keep_identity": options.keep_identity,
        "sink": options.sink,
    }
    again = repeated(target, "restore", repository, goal, asked)
    if again is not None and restores(again, chosen):
        return again
    journal.refuse_unfinished(target)
    opened = opener([repository, goal, options.sink], how.storage)
    since = look_since(files, chosen, target, goal, options, opened)
    return seal(plan_restore(files, repository, target, goal, chosen, since, options))
