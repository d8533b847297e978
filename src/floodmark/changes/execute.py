"""Executes the steps of a plan; only this module and `undo` change anything.

    journal     writes the whole plan, before anything changes
    block       adds an entry that no Spark reads: no query starts on a half-done change
    keep        copies aside what the steps replace
    steps       each may run twice; the given rewriter rewrites state last
    verify      compares the result with the steps; rewritten state is read back
    journal     finished
    unblock

After a stop at any point, the same plan continues from there, and `undo` takes it back.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from floodmark.changes import journal
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.in_use import Clock, refuse_in_use
from floodmark.changes.journal import Record, Stage
from floodmark.changes.plan import EMPTY, NOT_IN_USE, Plan
from floodmark.changes.plan.steps import (
    SINK,
    CopyFile,
    DeleteFile,
    RestoreFile,
    RewriteState,
    Step,
    WriteFile,
)
from floodmark.checkpoint.layout import NOTES
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import (
    CannotRead,
    CannotWrite,
    ContentLost,
    FileGone,
    FloodmarkError,
    NotACheckpoint,
    NotEmpty,
    NotThere,
    StalePlan,
    StoppedMidway,
    WrongUse,
)
from floodmark.progress import tell
from floodmark.storage.file_copy import copy_file, restore_file
from floodmark.storage.files import Files, WritableFiles

_AT_ONCE = 16
_AGAIN = "Repeat the command to go on, or take it back with `floodmark undo`."
_OUR_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


@dataclass(frozen=True)
class PlanPlaces:
    origin: WritableFiles
    target: WritableFiles
    sink: WritableFiles | None = None

    def of(self, step: Step) -> WritableFiles:
        if step.place == SINK:
            assert self.sink is not None
            return self.sink
        return self.target

    def standing(self, plan: Plan) -> WritableFiles:
        """Return the checkpoint whose fingerprint the plan has."""
        return self.target if plan.about_target else self.origin


class Rewriter(Protocol):
    """Rewrites an operator's state, in this process or as a Spark job."""

    def require(self, step: RewriteState, places: PlanPlaces) -> None:
        """Refuse a step that does not fit the old state, before anything changes."""

    def rewrite(self, step: RewriteState, places: PlanPlaces) -> None:
        """Rewrite the state; after a crash this may run twice, with the same result."""

    def check(self, step: RewriteState, places: PlanPlaces) -> None:
        """Read back what `rewrite` has written; raise an error if the rows differ."""


@dataclass(frozen=True)
class Outcome:
    plan: Plan
    words: str


def carry_out(
    plan: Plan,
    places: PlanPlaces,
    wait_seconds: float | None = None,
    clock: Clock | None = None,
    rewriter: Rewriter | None = None,
    read_data: bool = False,
) -> Outcome:
    """Execute a plan; `read_data` compares copies by their content, not only by their size."""
    clock = clock or Clock()
    target = places.target
    if rewriter is None and any(isinstance(step, RewriteState) for step in plan.steps):
        raise WrongUse(
            f"`{plan.verb}` rewrites state, but no rewriter was given",
            do="Execute it with the command that made the plan, or with `floodmark apply`.",
        )
    for step in _rewrites(plan):
        _ = step.target  # this refuses a state step of an earlier release
    record = journal.read_record(target, plan)
    if record is not None and record.plan.digest != plan.digest:
        raise journal.unfinished(target, record)
    if record is not None and record.stage is Stage.FINISHED:
        journal.unblock(target, plan)
        return Outcome(plan, "It was carried out already; there was nothing left to do.")
    journal.refuse_unfinished(target, apart_from=plan)
    for step in _rewrites(plan):
        assert rewriter is not None
        rewriter.require(step, places)
    resumed = (
        record is not None and record.stage is Stage.BEGUN and journal.is_blocked(target, plan)
    )
    if resumed:
        _check_origin(plan, places)
    else:
        check(plan, places, wait_seconds, clock)
        if not plan.steps:  # a journal of nothing would hide the change that `undo` takes back
            return Outcome(plan, "There was nothing to carry out.")
        record = _begin(plan, target)
    assert record is not None
    _finish(plan, places, record, rewriter, read_data)
    done = "It was stopped midway before, and is whole now." if resumed else "Done."
    return Outcome(plan, f"{done} To take it back: floodmark undo {shlex.quote(plan.target)}")


def check(plan: Plan, places: PlanPlaces, wait_seconds: float | None, clock: Clock) -> None:
    """Check that all preconditions of the plan still hold."""
    names = {condition.name for condition in plan.preconditions}
    if NOT_IN_USE in names:
        refuse_in_use(places.standing(plan), clock, wait_seconds)
    _check_origin(plan, places, always=True)
    if EMPTY in names:
        refuse_not_empty(places.target, plan)


def _check_origin(plan: Plan, places: PlanPlaces, always: bool = False) -> None:
    """Refuse a moved checkpoint; a change in place moves it itself, so that is left out."""
    if not plan.fingerprint or (plan.about_target and not always):
        return
    now = fingerprint(places.standing(plan))
    if now.digest != plan.fingerprint:
        raise StalePlan(
            "the checkpoint moved after this plan was made",
            f"planned at   {plan.standing}\nfound now    {now.words}",
            "A query is probably running on it. Stop the query, then plan again."
            if always
            else f"Take the half-made one back: floodmark undo {shlex.quote(plan.target)} "
            "--execute",
        )


def refuse_not_empty(target: Files, plan: Plan | None = None) -> None:
    there = held(target)
    allowed = {journal.path_of(plan)} if plan else set()
    for record in journal.read_records(target) if there else ():
        if record.stage is Stage.UNDONE:
            allowed.add(journal.path_of(record.plan))
    other = sorted(path for path in there if path not in allowed and not _is_ours(path))
    if other:
        raise NotEmpty(
            f"{target.root} is not empty: it holds {other[0]}"
            + (f" and {len(other) - 1} more" if len(other) > 1 else ""),
            _made_by(target, plan) or "A new checkpoint needs a place of its own.",
            "Name a folder that does not exist yet.",
        )


def _made_by(target: Files, plan: Plan | None) -> str:
    """Say that this same change was executed earlier, and that the stream has continued since."""
    for record in journal.read_records(target):
        same = plan is not None and (record.plan.verb, record.plan.origin) == (
            plan.verb,
            plan.origin,
        )
        if same and record.stage is Stage.FINISHED:
            return (
                f"An earlier `{record.plan.verb}` of {record.plan.origin} made it, from "
                f"{record.plan.standing}; it stands at {fingerprint(target).words} now."
            )
    return ""


def held(target: Files) -> frozenset[str]:
    """Return every file at a location that may not exist yet."""
    try:
        return frozenset(file.path for file in target.list().files)
    except NotACheckpoint as error:
        raise NotEmpty(error.what, "A checkpoint is a folder.", "Name another place.") from None
    except NotThere:
        return frozenset()


def _is_ours(path: str) -> bool:
    return _OUR_TEMPORARY.fullmatch(path.rsplit("/", 1)[-1]) is not None


def _begin(plan: Plan, target: WritableFiles) -> Record:
    try:
        return journal.begin(target, plan)
    except (OSError, CannotRead) as error:
        raise CannotWrite(
            f"{target.root} cannot be written to", str(error), "Nothing was changed."
        ) from None


def _finish(
    plan: Plan,
    places: PlanPlaces,
    record: Record,
    rewriter: Rewriter | None,
    read_data: bool = False,
) -> None:
    target = places.target
    try:
        journal.block(target, plan)
        _keep(plan, places)
        done = 0
        for done, _ in enumerate(_each(plan, places), 1):
            tell("steps", done, len(plan.steps))
        # Run one after the other: each uses all the memory and processors.
        for rewriting in _rewrites(plan):
            assert rewriter is not None
            rewriter.rewrite(rewriting, places)
            done += 1
            tell("steps", done, len(plan.steps))
        verify(plan, places, rewriter)
        if read_data:
            from floodmark.changes.read_data import compare_contents

            compare_contents(plan, places.origin, target)
        sweep(target)
        journal.move(target, record, Stage.FINISHED, fingerprint(target).digest)
        journal.unblock(target, plan)
    except StalePlan:
        raise
    except (OSError, FloodmarkError, KeyboardInterrupt) as error:
        raise _stopped(plan, target, error) from None


def _stopped(plan: Plan, target: Files, error: BaseException) -> StoppedMidway:
    words = told(error)
    why = getattr(error, "why", "")
    kept = f"What was replaced is kept in {journal.kept_folder(plan)}. " if plan.in_place else ""
    place = shlex.quote(target.root)
    undo = f"floodmark undo {place} --execute"
    do = f"Go on with it: floodmark apply --resume {place} --execute\nTake it back: {undo}"
    if plan.verb not in ("repair", "compact"):
        do = f"Repeat the command to go on, or take it back: {undo}"
    if isinstance(error, ContentLost):
        # A repeat would stop there again.
        do = f"Take it back: {undo}\nThen choose another snapshot: {error.do}"
    return StoppedMidway(
        f"{plan.verb} stopped midway: {words}",
        f"{why}\n{kept}No query can start on {target.root} until this is settled.".strip(),
        do,
    )


def told(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return error.what if isinstance(error, FloodmarkError) else str(error)


def kept_path(plan: Plan, step: Step) -> str:
    return f"{journal.kept_folder(plan)}/{step.place}/{step.path}"


def _keep(plan: Plan, places: PlanPlaces) -> None:
    replaced = [step for step in plan.steps if step.replaces]
    if not replaced:
        return
    folder = journal.kept_folder(plan)
    have = {file.path for file in places.target.list(folder).files} if replaced else set()
    for step in replaced:
        if kept_path(plan, step) not in have:
            try:
                copy_file(places.of(step), step.path, places.target, kept_path(plan, step))
            except FileGone:
                # A checksum without its file, or a step from before a crash that needed no copy:
                # nothing is lost.
                continue


def _each(plan: Plan, places: PlanPlaces) -> Iterator[Step]:
    steps = [step for step in plan.steps if not isinstance(step, RewriteState)]
    if not (places.target.reads_cost and not plan.in_place):
        for step in steps:
            yield _do(step, places)
    else:
        # A new checkpoint is blocked until it is whole, so the order of its files is free.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(lambda step: _do(step, places), steps)


def _rewrites(plan: Plan) -> list[RewriteState]:
    return [step for step in plan.steps if isinstance(step, RewriteState)]


def _do(step: Step, places: PlanPlaces) -> Step:
    files = places.of(step)
    if isinstance(step, WriteFile):
        restore_file(files, step.path, step.data, step.mode)
    elif isinstance(step, CopyFile):
        copy_file(places.origin, step.origin, files, step.path)
    elif isinstance(step, RestoreFile):
        from floodmark.storage.repository import fetch_object

        # Never link: whatever happens to the checkpoint, the repository must not change.
        data = fetch_object(places.origin, step.origin, step.path)
        restore_file(files, step.path, data, step.mode)
    elif isinstance(step, DeleteFile):
        files.delete([RelativePath(step.path)])
    return step


def verify(plan: Plan, places: PlanPlaces, rewriter: Rewriter | None = None) -> None:
    """Check that the result is what the steps say."""
    for rewriting in _rewrites(plan):
        assert rewriter is not None
        rewriter.check(rewriting, places)
    for files, place in ((places.target, "target"), (places.sink, SINK)):
        steps = [
            step
            for step in plan.steps
            if step.place == place and not isinstance(step, RewriteState)
        ]
        if files is None or not steps:
            continue
        sizes = {file.path: file.size for file in files.list().files}
        final = {step.path: step for step in steps}
        for path, step in final.items():
            if isinstance(step, DeleteFile):
                if path in sizes:
                    raise StoppedMidway(
                        f"{path} is there again", "A query still writes here.", _AGAIN
                    )
            elif sizes.get(path) != step.size:
                found = f"{sizes[path]} bytes" if path in sizes else "missing"
                raise StoppedMidway(f"{path} is {found}, not {step.size} bytes", "", _AGAIN)
        written = {path: step for path, step in final.items() if isinstance(step, WriteFile)}
        for path, data in files.read_many(map(RelativePath, written)).items():
            if data != written[path].data:
                raise StoppedMidway(f"{path} does not hold what was written", "", _AGAIN)


def sweep(target: WritableFiles) -> None:
    """Delete temporary files that a crash of this change left; some of them stop Spark."""
    left = [
        file.path
        for file in target.list().files
        if _is_ours(file.path) and not file.path.startswith(f"{NOTES}/kept/")
    ]
    target.delete(map(RelativePath, left))
