"""Builds and executes the plans of `backup` and `restore`."""

from __future__ import annotations

from dataclasses import replace

from floodmark.changes import journal
from floodmark.changes.carry.since_snapshot import RestoreOptions, look_since
from floodmark.changes.plan import RESTORE, Plan, seal
from floodmark.changes.planners.backup import plan_backup, plan_restore, refuse_another_query
from floodmark.changes.take_backup import Retention, take_backup
from floodmark.changes.verbs.carrying_out import (
    Carrying,
    Change,
    Storage,
    absolute,
    carried,
    places_of,
    refuse_overlap,
    repeated,
)
from floodmark.checkpoint.text import several
from floodmark.errors import CannotRead, EditedPlan, StoppedMidway
from floodmark.storage.files import open_files
from floodmark.storage.noted_places import opener
from floodmark.storage.repository import (
    Damage,
    Snapshot,
    check,
    choose_snapshot,
    object_path,
    open_repository,
    snapshots,
)


def back_up(path: str, repository: str, retention: Retention, carrying: Carrying) -> Change:
    refuse_overlap(path, repository)
    files = open_files(absolute(path), carrying.storage)
    options: dict[str, object] = {
        "keep_last": retention.keep_last,
        "keep_daily": retention.keep_daily,
    }
    plan = seal(plan_backup(files, absolute(path), absolute(repository), options))
    return backed_up(plan, carrying)


def backed_up(plan: Plan, carrying: Carrying) -> Change:
    if not carrying.execute:
        return Change(plan)
    retention = _retention(plan)
    places = places_of(plan, carrying.storage)
    refuse_another_query(places.origin, plan)
    try:
        done = take_backup(places.origin, plan.origin, places.target, retention)
    except (OSError, CannotRead) as error:
        raise StoppedMidway(
            "the backup did not come to its end",
            str(error),
            "No snapshot was made, and the earlier ones are whole. Repeat it when the storage"
            " answers again and has room.",
        ) from None
    size = several(done.snapshot.bytes, "byte")
    words = f"Snapshot {done.snapshot.id}: {done.new_bytes:,} of {size} new."
    if done.removed_snapshots:
        words += f" Gone: {several(done.removed_snapshots, 'older snapshot')}."
    return Change(plan, True, words)


def _retention(plan: Plan) -> Retention:
    """As the plan says it, which may have been saved, and be a stranger's."""
    last, daily = plan.options.get("keep_last"), plan.options.get("keep_daily")
    for number in (last, daily):
        if number is not None and (type(number) is not int or number < 1):
            raise EditedPlan(
                "the plan of a backup does not say how many snapshots to keep",
                "No command makes such a plan.",
                "Plan it again: floodmark backup CP REPO --out PLAN.json",
            )
    return Retention(last, daily)


def _is_of(plan: Plan, snapshot: Snapshot) -> bool:
    """True where a plan restores what the snapshot has, and nothing else of the repository."""
    contents = {(file.path, object_path(file.sha256)) for file in snapshot.files}
    return all((step.path, step.origin) in contents for step in plan.steps if step.do == RESTORE)


def check_repository(repository: str, storage: Storage | None) -> tuple[int, tuple[Damage, ...]]:
    """How many snapshots there are, and what is wrong with them."""
    files = open_files(absolute(repository), storage)
    open_repository(files)
    return len(snapshots(files)), check(files)


def list_snapshots(repository: str, storage: Storage | None) -> tuple[Snapshot, ...]:
    files = open_files(absolute(repository), storage)
    open_repository(files)
    return snapshots(files)


def restore(repository: str, path: str, options: RestoreOptions, carrying: Carrying) -> Change:
    refuse_overlap(repository, path)
    files = open_files(absolute(repository), carrying.storage)
    open_repository(files)
    goal = absolute(path)
    target = open_files(goal, carrying.storage)
    chosen = choose_snapshot(files, options.snapshot)
    if options.sink is not None:
        options = replace(options, sink=absolute(options.sink))
    asked = {
        "snapshot": chosen.id,
        "keep_identity": options.keep_identity,
        "sink": options.sink,
    }
    again = repeated(target, "restore", absolute(repository), goal, asked)
    if again is not None and _is_of(again, chosen):
        return carried(again, carrying)
    journal.refuse_unfinished(target)
    opened = opener([repository, goal, options.sink], carrying.storage)
    since = look_since(files, chosen, target, goal, options, opened)
    plan = plan_restore(files, absolute(repository), target, goal, chosen, since, options)
    return carried(seal(plan), carrying)
