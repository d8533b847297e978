"""Executes earlier plans: saved plans, changes that stopped midway, undo, forget."""

from __future__ import annotations

import shlex
from dataclasses import replace

from floodmark.changes import journal
from floodmark.changes.apply import Carrying, Change, doubted, execute, places_of
from floodmark.changes.named_places import absolute, require_named_origin, require_named_sink
from floodmark.changes.plan import Plan, refuse_unaccepted
from floodmark.changes.plan.saved import read_plan
from floodmark.changes.undo import (
    forget,
    is_unfinished,
    plan_forget,
    plan_undo,
    require_fresh,
    require_place,
    require_same_kept,
    settle,
    undo,
)
from floodmark.errors import StoppedMidway
from floodmark.storage.file_copy import with_modes_of
from floodmark.storage.files import open_files


def apply_saved(path: str, carrying: Carrying, sink: str | None = None) -> Change:
    plan = read_plan(path)
    require_named_sink(plan, sink, f"floodmark apply {shlex.quote(path)}")
    if plan.verb != "undo":  # which asks again whether a query runs
        refuse_unaccepted(plan, saved=True)
    return apply_plan(plan, carrying, sink)


def apply_plan(plan: Plan, carrying: Carrying, sink: str | None) -> Change:
    """Execute a saved plan; `sink` is the file sink's folder that the user named."""
    target = open_files(plan.target, carrying.storage)
    if plan.verb == "undo":
        require_fresh(target, plan)
        accept = tuple(plan.options.get("accept", ()))
        return take_back(plan.target, replace(carrying, accept=accept), sink)
    if plan.verb == "forget":
        require_same_kept(target, plan.target, plan)
        return forget_kept(plan.target, carrying)
    if plan.verb == "backup":
        return back_up(plan, carrying)
    return execute(plan, carrying)


def resume_change(path: str, carrying: Carrying, origin: str | None, sink: str | None) -> Change:
    """Continue a change that stopped midway, from the journal in its location.

    Somebody else may have written the journal. So the change reads from `origin` and changes `sink`
    only where the user has named them, and the journal agrees.
    """
    location = absolute(path)
    target = open_files(location, carrying.storage)
    require_place(target)
    plan = journal.begun(target).plan
    command = f"floodmark apply --resume {shlex.quote(path)}"
    require_named_sink(plan, sink, command)
    require_named_origin(plan, location, origin, command)
    if not carrying.execute:
        return Change(plan)
    return execute(plan, carrying)


def take_back(path: str, carrying: Carrying, sink: str | None = None) -> Change:
    """Undo the last change; `sink` is the file sink's folder, whose log the change also changed."""
    target = open_files(absolute(path), carrying.storage)
    require_place(target)
    if carrying.execute and (settled := settle(target, absolute(path))):
        return Change(settled, True, "It was already taken back.")
    plan = plan_undo(target, absolute(path), carrying.accept)
    if not is_unfinished(target):
        plan = doubted(plan, target, carrying)
    if not carrying.execute:
        return Change(plan)
    refuse_unaccepted(plan)
    require_named_sink(plan, sink, f"floodmark undo {shlex.quote(path)}")
    place = open_files(plan.sink, carrying.storage) if plan.sink else None
    outcome = undo(with_modes_of(target, target), place, carrying.clock)
    return Change(plan, True, outcome.words)


def forget_kept(path: str, carrying: Carrying) -> Change:
    target = open_files(absolute(path), carrying.storage)
    require_place(target)
    plan = plan_forget(target, absolute(path))
    if not carrying.execute:
        return Change(plan)
    try:
        return Change(plan, True, forget(target, plan).words)
    except OSError as error:
        raise StoppedMidway(
            f"{path}: cannot delete", str(error), "Repeat the command: it deletes the rest."
        ) from None


def back_up(plan: Plan, carrying: Carrying) -> Change:
    if not carrying.execute:
        return Change(plan)
    from floodmark.changes.take_backup import execute_backup

    places = places_of(plan, carrying.storage)
    return Change(plan, True, execute_backup(plan, places.origin, places.target))
