"""Takes back a change, finished or half done, and forgets what changes have kept.

Both use the journal in the checkpoint, which may be a stranger's: they change only the location
that contains it, whatever it names. They restore a sink's log only where the user has named the
sink's folder.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from floodmark.changes import journal
from floodmark.changes.carry.origin import refuse_odd_content
from floodmark.changes.execute import Outcome, PlanPlaces, kept_path, sweep, told
from floodmark.changes.fingerprint import Fingerprint, fingerprint
from floodmark.changes.in_use import Clock, refuse_in_use
from floodmark.changes.journal import Record, Stage
from floodmark.changes.plan import (
    UNCHANGED,
    Consequence,
    Plan,
    Precondition,
    seal,
    unchanged_and_idle,
)
from floodmark.changes.plan.steps import SINK, TARGET, CopyFile, DeleteFile, RewriteState, Step
from floodmark.changes.sinks import sink_of
from floodmark.changes.sinks.consequences import goes_on
from floodmark.checkpoint.layout import COMMITS, OFFSETS, batch_id, side_file
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.text import compact_json, several
from floodmark.errors import FloodmarkError, NoAnswer, StalePlan, StoppedMidway
from floodmark.storage.file_copy import copy_file, drop_empty_folders
from floodmark.storage.files import Files, WritableFiles
from floodmark.storage.last_start import latest_note


def last_change(target: Files) -> Record:
    """Return the change that an undo takes back."""
    records = [r for r in journal.read_records(target) if r.stage is not Stage.UNDONE]
    if not records:
        raise NoAnswer(
            f"{target.root}: there is no change to take back",
            "No change of floodmark is written down here, or it was forgotten.",
            "`floodmark batches CP` shows where it stands; `floodmark rewind` takes it back.",
        )
    return records[-1]


def plan_undo(target: Files, location: str, accept: Sequence[str] = ()) -> Plan:
    """Plan what an undo would do, for showing; `undo` itself uses the journal."""
    record = last_change(target)
    plan = record.plan
    since = _since(target, record)
    kept = _kept(target, plan)
    back = tuple(
        CopyFile(step.path, "as it was before", origin=kept_path(plan, step), place=step.place)
        for step in plan.steps
        if kept_path(plan, step) in kept
    )
    away = tuple(
        DeleteFile(step.path, f"`{plan.verb}` has made it", place=step.place)
        for step in plan.steps
        if not isinstance(step, DeleteFile) and not step.replaces
    )
    made = _undo_plan(record, location, (*back, *away), fingerprint(target))
    if plan.in_place:
        made = replace(made, consequences=_consequences(target, back, away))
    options = {**made.options, "accept": [*accept]}
    return seal(replace(made, notes=(*since.notes, *made.notes), options=options))


def _consequences(
    target: Files, back: Sequence[Step], away: Sequence[Step]
) -> tuple[Consequence, ...]:
    """Return what happens after the undo: the log's batch in flight runs again."""
    gone = {step.path for step in away if step.place == TARGET}
    put_back = {step.path for step in back if step.place == TARGET and _is_log(step.path)}
    log = (_log_files(target) - gone) | put_back
    planned, done = (
        max((_number(path) for path in log if path.startswith(f"{name}/")), default=-1)
        for name in (OFFSETS, COMMITS)
    )
    return goes_on(planned if planned > done else None, sink_of(latest_note(target)))


def is_unfinished(target: Files) -> bool:
    return last_change(target).unfinished


def undo(
    target: WritableFiles, sink: WritableFiles | None = None, clock: Clock | None = None
) -> Outcome:
    """Undo the last change; `sink` is the file sink's folder that the user named."""
    record = last_change(target)
    plan = record.plan
    since = _since(target, record)
    if record.stage is Stage.FINISHED:
        refuse_in_use(target, clock or Clock())
        since = _since(target, record)
    # Behind a query's new batches, so that no query plans while files are restored.
    block = replace(plan, block=max(plan.block, since.next_batch))
    places = PlanPlaces(target, target, sink)
    _kept(target, plan)
    try:
        journal.block(target, block)
        record = journal.move(target, record, Stage.UNDOING)
        _put_back(plan, places)
        journal.move(target, record, Stage.UNDONE, fingerprint(target).digest)
        _clean(plan, target)
    except StalePlan:
        raise
    except (OSError, FloodmarkError, KeyboardInterrupt) as error:
        raise StoppedMidway(
            f"undo stopped midway: {told(error)}",
            "Files that are not restored yet are still kept.",
            f"Repeat it: floodmark undo {shlex.quote(target.root)} --execute",
        ) from None
    return Outcome(plan, " ".join([f"The `{plan.verb}` is taken back.", *since.notes]))


@dataclass(frozen=True)
class _Since:
    """The batches that a query has added to the log after the change."""

    batches: tuple[int, ...] = ()
    next_batch: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.batches:
            return ()
        first, last = self.batches[0], self.batches[-1]
        named = f"batch {first}" if first == last else f"batches {first} to {last}"
        return (
            f"A query that was running has added to the log since: {named}. These batches follow "
            f"the "
            "log as it was before the change, and stay: with that log restored, the stream is as "
            "if the change had not happened.",
        )


def _since(target: Files, record: Record) -> _Since:
    """Refuse if the stream was started on the changed log and has run other batches."""
    if record.stage is not Stage.FINISHED:
        return _Since(next_batch=_next_batch(target, record))
    now = fingerprint(target)
    if now.digest == record.after:
        return _Since()
    plan = record.plan
    there = _log_files(target)
    removed = {
        step.path for step in plan.steps if step.place == TARGET and isinstance(step, DeleteFile)
    }
    if removed & there or not plan.in_place:
        raise StalePlan(
            f"{target.root} has moved since the `{record.plan.verb}`",
            f"found now    {now.words}\nThe stream was started on the changed checkpoint. Taking "
            "the change back would lose what was done since.",
            "Go on with it as it is, or `floodmark rewind` it.",
        )
    first = min((_number(path) for path in removed if _is_log(path)), default=plan.block)
    made = {step.path for step in plan.steps}
    added = {_number(path) for path in there - made}
    later = tuple(sorted(number for number in added if number >= first))
    return _Since(later, _next_batch(target, record))


def _next_batch(target: Files, record: Record) -> int:
    return max([*map(_number, _log_files(target)), record.plan.block - 1]) + 1


def _log_files(target: Files) -> set[str]:
    """Return the entries of both logs, without a block."""
    paths = {f"{log}/{name}" for log in (OFFSETS, COMMITS) for name in target.level(log).files}
    return {path for path in paths if _is_log(path)} - journal.blocks(target)


def _is_log(path: str) -> bool:
    folder, _, name = path.partition("/")
    return folder in (OFFSETS, COMMITS) and batch_id(name) is not None


def _number(path: str) -> int:
    return int(path.partition("/")[2])


def _unblock(target: WritableFiles, plan: Plan) -> None:
    """Remove the block of this change, also behind batches that a query has added."""
    for path in journal.blocks(target):
        journal.unblock(target, replace(plan, block=_number(path)))


def settle(target: WritableFiles, location: str) -> Plan | None:
    """Finish an undo that stopped after everything was restored; None: there is no such undo."""
    records = journal.read_records(target)
    if not records or records[-1].stage is not Stage.UNDONE:
        return None
    plan = records[-1].plan
    left = _kept(target, plan) or journal.blocks(target)
    if not left and plan.in_place:
        return None
    _clean(plan, target)
    return _undo_plan(records[-1], location, (), fingerprint(target))


def _undo_plan(record: Record, location: str, steps: tuple[Step, ...], now: Fingerprint) -> Plan:
    plan = record.plan
    half = " that stopped midway" if record.unfinished else ""
    return seal(
        Plan(
            "undo",
            f"Take back the `{plan.verb}`{half}",
            location,
            location,
            steps,
            unchanged_and_idle(location, now.words),
            now.digest,
            now.words,
            plan.block,
            {"change": plan.id},
            _elsewhere(plan, location),
            sink=plan.sink if any(step.place == SINK for step in steps) else None,
        )
    )


def _elsewhere(plan: Plan, location: str) -> tuple[str, ...]:
    if plan.target == location:
        return ()
    return (f"The journal names {plan.target}. Only files in {location} are changed.",)


def require_fresh(target: Files, saved: Plan) -> None:
    """Refuse a saved undo plan for another change, or for a checkpoint that has moved."""
    now = fingerprint(target)
    if (
        last_change(target).plan.id != saved.options.get("change")
        or now.digest != saved.fingerprint
    ):
        raise StalePlan(
            f"{target.root} has moved since this plan was made",
            f"planned at   {saved.standing}\nfound now    {now.words}",
            "Plan again: floodmark undo CP --out PLAN.json",
        )


def require_place(target: Files) -> None:
    """Raise an error where nothing is at the location."""
    level = target.level()
    if not level.files and not level.folders:
        target.list()


def _put_back(plan: Plan, places: PlanPlaces) -> None:
    kept = _kept(places.target, plan)
    for step in plan.steps:
        files = places.of(step)
        if kept_path(plan, step) in kept:
            copy_file(places.target, kept_path(plan, step), files, step.path)
        elif isinstance(step, RewriteState):
            files.delete(RelativePath(file.path) for file in files.list(step.path).files)
        elif not isinstance(step, DeleteFile) and not step.replaces:
            made = [step.path, *([side_file(step.path)] if step.place == TARGET else [])]
            files.delete(map(RelativePath, made))


def _kept(target: Files, plan: Plan) -> frozenset[str]:
    listing = target.list(journal.kept_folder(plan))
    refuse_odd_content(target, listing)
    return frozenset(file.path for file in listing.files)


def _clean(plan: Plan, target: WritableFiles) -> None:
    target.delete(map(RelativePath, _kept(target, plan)))
    sweep(target)
    _unblock(target, plan)
    if not plan.in_place:
        target.delete([journal.path_of(plan)])  # the location is then as empty as before
        drop_empty_folders(target)


def plan_forget(target: Files, location: str) -> Plan:
    journal.refuse_unfinished(target)
    records = journal.read_records(target)
    listing = target.list(journal.KEPT)
    refuse_odd_content(target, listing)
    kept = listing.files
    if not records and not kept:
        raise NoAnswer(
            f"{target.root}: no change has kept anything here",
            do="There is nothing to forget.",
        )
    journals = {journal.path_of(record.plan) for record in records}
    sizes = {file.path: file.size for file in target.list(journal.FOLDER).files}
    steps = (
        *(DeleteFile(file.path, "kept by an earlier change", size=file.size) for file in kept),
        *(
            DeleteFile(path, "the change's journal", size=sizes.get(path))
            for path in sorted(journals)
        ),
    )
    size = sum(step.size or 0 for step in steps)
    number = several(len(records), "change")
    return seal(
        Plan(
            "forget",
            f"Forget {number}: {several(len(steps), 'file')} ({several(size, 'byte')}), "
            f"{several(len(kept), 'kept file')} among them",
            location,
            location,
            steps,
            (Precondition(UNCHANGED, f"{location} has kept nothing else since"),),
            _kept_digest(steps),
            number,
            0,
            notes=("After this, `undo` cannot take these changes back.",),
        )
    )


def _kept_digest(steps: tuple[Step, ...]) -> str:
    return hashlib.sha256(compact_json(sorted(step.path for step in steps)).encode()).hexdigest()


def require_same_kept(target: Files, location: str, saved: Plan) -> None:
    now = plan_forget(target, location)
    if now.fingerprint != saved.fingerprint:
        raise StalePlan(
            f"{target.root} has kept other files since this plan was made",
            f"planned at   {saved.standing}\nfound now    {now.standing}",
            "Plan again: floodmark forget CP --out PLAN.json",
        )


def forget(target: WritableFiles, plan: Plan) -> Outcome:
    target.delete(RelativePath(step.path) for step in plan.steps)
    return Outcome(plan, f"Removed {several(len(plan.steps), 'file')}.")
