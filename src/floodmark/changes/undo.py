"""Takes a change back, whole or half done; and forgets what changes have kept."""

from __future__ import annotations

from collections.abc import Callable

from floodmark.changes import journal
from floodmark.changes.apply import Outcome, Places, kept_path
from floodmark.changes.belonging import sidecar
from floodmark.changes.fingerprint import Fingerprint, fingerprint
from floodmark.changes.journal import Record, Stage
from floodmark.changes.plan import COPY, DELETE, REWRITE, TARGET, Plan, Step, seal
from floodmark.changes.use import Clock, refuse_in_use
from floodmark.errors import FloodmarkError, NoAnswer, StalePlan, StoppedMidway
from floodmark.storage.copying import copy_file
from floodmark.storage.files import Files

PlacesOf = Callable[[Plan], Places]


def last_change(target: Files) -> Record:
    """The change that an undo takes back."""
    records = [r for r in journal.read_records(target) if r.stage is not Stage.UNDONE]
    if not records:
        raise NoAnswer(
            f"{target.root}: there is no change to take back",
            "No change of floodmark is written down here, or it was forgotten.",
        )
    return records[-1]


def plan_undo(target: Files, location: str) -> Plan:
    """What an undo would do, to be shown; `undo` works from the journal."""
    record = last_change(target)
    plan = record.plan
    _refuse_moved(target, record)
    kept = {file.path for file in target.list(journal.kept_folder(plan)).files}
    back = tuple(
        Step(COPY, step.path, "as it was before", origin=kept_path(plan, step), place=step.place)
        for step in plan.steps
        if kept_path(plan, step) in kept
    )
    away = tuple(
        Step(DELETE, step.path, f"`{plan.verb}` has made it", place=step.place)
        for step in plan.steps
        if step.do != DELETE and not step.replaces
    )
    half = " that stopped midway" if record.unfinished else ""
    return _undo_plan(plan, location, (*back, *away), fingerprint(target), half)


def undo(target: Files, places_of: PlacesOf, clock: Clock | None = None) -> Outcome:
    record = last_change(target)
    plan = record.plan
    if record.stage is Stage.FINISHED:
        refuse_in_use(target, clock or Clock())
        _refuse_moved(target, record)
    places = places_of(plan)
    try:
        journal.block(target, plan)
        record = journal.move(target, record, Stage.UNDOING)
        _put_back(plan, places)
        journal.move(target, record, Stage.UNDONE)
        _clean(plan, target)
    except StalePlan:
        raise
    except (OSError, FloodmarkError) as error:
        words = error.what if isinstance(error, FloodmarkError) else str(error)
        raise StoppedMidway(
            f"undo stopped midway: {words}",
            "What it has not yet put back is still kept.",
            f"Repeat it: floodmark undo {target.root} --execute",
        ) from None
    return Outcome(plan, f"The `{plan.verb}` is taken back.")


def settle(target: Files, location: str) -> Plan | None:
    """The last touches of an undo that was stopped after everything was back; None: not so."""
    records = journal.read_records(target)
    if not records or records[-1].stage is not Stage.UNDONE:
        return None
    plan = records[-1].plan
    left = target.list(journal.kept_folder(plan)).files or journal.is_blocked(target, plan)
    if not left and plan.in_place:
        return None
    _clean(plan, target)
    return _undo_plan(plan, location, (), fingerprint(target), "")


def _undo_plan(
    plan: Plan, location: str, steps: tuple[Step, ...], now: Fingerprint, half: str
) -> Plan:
    return seal(
        Plan(
            "undo",
            f"Take back the `{plan.verb}`{half}",
            location,
            location,
            steps,
            (),
            now.digest,
            now.words,
            plan.block,
            {"change": plan.id},
        )
    )


def _refuse_moved(target: Files, record: Record) -> None:
    if record.stage is not Stage.FINISHED:
        return
    now = fingerprint(target)
    if now.digest != record.after:
        raise StalePlan(
            f"{target.root} has moved since the `{record.plan.verb}`",
            f"found now    {now.words}\nTaking the change back would lose what was done since.",
            "Go on with it as it is, or `floodmark rewind` it.",
        )


def _put_back(plan: Plan, places: Places) -> None:
    kept = {file.path for file in places.target.list(journal.kept_folder(plan)).files}
    for step in plan.steps:
        files = places.of(step)
        if kept_path(plan, step) in kept:
            copy_file(places.target, kept_path(plan, step), files, step.path)
        elif step.do == REWRITE:
            files.delete([file.path for file in files.list(step.path).files])
        elif step.do != DELETE and not step.replaces:
            files.delete([step.path, *([sidecar(step.path)] if step.place == TARGET else [])])


def _clean(plan: Plan, target: Files) -> None:
    target.delete(file.path for file in target.list(journal.kept_folder(plan)).files)
    journal.unblock(target, plan)
    if not plan.in_place:
        target.delete([journal.path_of(plan)])  # the place is as empty as it was


def plan_forget(target: Files, location: str) -> Plan:
    journal.refuse_unfinished(target)
    records = journal.read_records(target)
    kept = target.list(journal.KEPT).files
    if not records and not kept:
        raise NoAnswer(f"{target.root}: no change has kept anything here")
    steps = tuple(Step(DELETE, file.path, "kept by an earlier change") for file in kept) + tuple(
        Step(DELETE, journal.path_of(record.plan), "the change's journal") for record in records
    )
    size = sum(file.size for file in kept)
    return seal(
        Plan(
            "forget",
            f"Forget {len(records)} changes and the {len(kept)} files ({size} bytes) they kept",
            location,
            location,
            steps,
            (),
            "",
            "",
            0,
            notes=("After this, `undo` has nothing to take them back with.",),
        )
    )


def forget(target: Files, plan: Plan) -> Outcome:
    target.delete(step.path for step in plan.steps)
    return Outcome(plan, f"{len(plan.steps)} files are gone.")
