"""From what a user asks to a plan, and from a plan to what is done. Opens the places."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.changes import journal
from floodmark.changes.apply import (
    Outcome,
    Places,
    Progress,
    Rewriter,
    carry_out,
    refuse_not_empty,
)
from floodmark.changes.backing import (
    BackupResult,
    Retention,
    plan_backup,
    plan_restore,
    refuse_another_query,
    take_backup,
)
from floodmark.changes.broker import ask_kafka, ask_reach
from floodmark.changes.consequences import FILE_SINKS
from floodmark.changes.copy import plan_copy
from floodmark.changes.course import Wish
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.given_offsets import parse_given
from floodmark.changes.journal import Stage
from floodmark.changes.origin import Origin, open_origin
from floodmark.changes.past import Whom, offsets_at
from floodmark.changes.plan import Plan, parse_plan, plan_to_json, render_plan, seal
from floodmark.changes.reach import require_reach
from floodmark.changes.rehome import Moves, moved_place, parse_moves
from floodmark.changes.repair import refuse_unaccepted
from floodmark.changes.rewind import (
    Aim,
    Goal,
    by_time,
    plan_rewind,
    planned_at,
    to_batch,
    to_offsets,
)
from floodmark.changes.sinklog import SinkPlace
from floodmark.changes.undo import (
    forget,
    plan_forget,
    plan_undo,
    require_fresh,
    require_place,
    require_same_kept,
    settle,
    undo,
)
from floodmark.changes.upgrade import plan_upgrade
from floodmark.changes.use import Clock
from floodmark.checkpoint.position import choose_batch
from floodmark.checkpoint.sources import SourceOffset, read_source_offset
from floodmark.errors import BatchPurged, CannotWrite, FloodmarkError, StoppedMidway, WrongUse
from floodmark.storage.backup import (
    Damage,
    Snapshot,
    check,
    choose_snapshot,
    open_repository,
    snapshots,
)
from floodmark.storage.files import Files, local_path, open_files

Storage = Mapping[str, Any]
_DONE = "This was carried out already, and stands as it was left: there is nothing to do."


@dataclass(frozen=True)
class Change:
    """A plan, and what became of it."""

    plan: Plan
    executed: bool = False
    words: str = ""

    @property
    def as_json(self) -> dict[str, Any]:
        return {"plan": plan_to_json(self.plan), "executed": self.executed}


@dataclass(frozen=True)
class Carrying:
    """How a change is carried out; without `execute` it is only planned."""

    execute: bool = False
    wait_seconds: float | None = None
    storage: Storage | None = None
    clock: Clock | None = None
    progress: Progress | None = None
    rewriter: Rewriter | None = None
    """Rewrites state in place of this process: an engine's job, say."""


def absolute(location: str) -> str:
    """A plan is carried out from any folder."""
    path = local_path(str(location))
    return str(location).rstrip("/") if path is None else os.path.abspath(path)  # noqa: PTH100


def upgrade(
    path: str,
    new: str,
    wish: Wish,
    carrying: Carrying,
    check: Callable[[Origin], Sequence[str]] | None = None,
) -> Change:
    """`check` looks at the new code, and says what it found right."""

    def make(origin: Origin) -> Plan:
        checked = tuple(check(origin)) if check else ()
        asked = ask_kafka(origin.checkpoint, wish)
        plan = plan_upgrade(origin, absolute(new), asked.wish)
        return _with_notes(plan, (*checked, *asked.notes))

    batches = () if wish.from_batch is None else (wish.from_batch,)
    return to_new_place("upgrade", path, new, make, carrying, batches)


def copy(
    path: str,
    dest: str,
    rehome: Sequence[str],
    new_identity: bool,
    sink: str | None,
    carrying: Carrying,
) -> Change:
    moves = parse_moves(rehome)

    def make(origin: Origin) -> Plan:
        place = _rehomed_sink(origin, moves, sink, carrying) if moves else None
        return plan_copy(origin, absolute(dest), moves, new_identity, place)

    return to_new_place("copy", path, dest, make, carrying, ())


def _rehomed_sink(
    origin: Origin, moves: Moves, sink: str | None, carrying: Carrying
) -> SinkPlace | None:
    """The output folder as it lies now: named, or the noted one where a move is about it."""
    known = origin.sink
    if sink is None and known is not None and known.kind in FILE_SINKS and known.path is not None:
        sink = moved_place(f"{known.path.rstrip('/')}/", moves)
    return _place_of_sink(sink, carrying) if sink is not None else None


def _with_notes(plan: Plan, notes: tuple[str, ...]) -> Plan:
    return replace(plan, notes=(*notes, *plan.notes))


def to_new_place(
    verb: str,
    path: str,
    new: str,
    make: Callable[[Origin], Plan],
    carrying: Carrying,
    batches: Collection[int] | None = None,
) -> Change:
    """`make` plans a new checkpoint from the one at `path`; `batches` are what it wants of it."""
    refuse_overlap(path, new)
    origin_files = open_files(absolute(path), carrying.storage)
    return begin_new_place(make(open_origin(origin_files, absolute(path), batches)), carrying)


def begin_new_place(plan: Plan, carrying: Carrying) -> Change:
    """A plan for a place where nothing is yet, but what this very plan has left."""
    target = open_files(plan.target, carrying.storage)
    plan = seal(plan)
    recorded = _recorded(target, plan)
    if recorded is None:
        journal.refuse_unfinished(target, apart_from=plan)
        refuse_not_empty(target, plan)
    return _carried(recorded or plan, carrying)


def _recorded(target: Files, plan: Plan) -> Plan | None:
    """This very change, begun earlier, or finished and untouched since."""
    for record in reversed(journal.read_records(target)):
        same = (record.plan.verb, record.plan.origin) == (plan.verb, plan.origin) and dict(
            record.plan.options
        ) == dict(plan.options)
        if same and _can_repeat(target, record):
            return record.plan
    return None


def _can_repeat(target: Files, record: journal.Record) -> bool:
    if record.stage is Stage.BEGUN:
        return True
    return record.stage is Stage.FINISHED and fingerprint(target).digest == record.after


def refuse_overlap(path: str, new: str) -> None:
    first, second = _comparable(path), _comparable(new)
    if first == second:
        raise WrongUse(
            f"{path} and {new} are the same place",
            "What is made would lie on what it is made from.",
            "Name another place.",
        )
    for inner, outer in ((first, second), (second, first)):
        if inner.startswith(outer + "/"):
            raise WrongUse(
                f"{path} and {new}: one lies inside the other",
                "A checkpoint inside a checkpoint would be taken for a part of it.",
                "Name a place beside it.",
            )


def _comparable(location: str) -> str:
    path = local_path(location)
    if path is not None:
        return os.path.realpath(path)
    scheme, _, rest = location.rstrip("/").partition("://")
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"


def rewind(path: str, aim: Aim, carrying: Carrying) -> Change:
    chosen = [one for one in (aim.batch, aim.at_ms, aim.offsets_file) if one is not None]
    if len(chosen) != 1:
        raise WrongUse(
            f"rewind: {len(chosen) or 'none'} of --to-batch, --to-time and --to-offsets is given",
            "Each of them says where to go.",
            "Give exactly one; `floodmark batches CP` lists batches and their times.",
        )
    files = open_files(absolute(path), carrying.storage)
    asked = {"to_batch": aim.batch, "to_time_ms": aim.at_ms, "keep_identity": aim.keep_identity}
    if aim.offsets_file is None and (again := _repeated(files, "rewind", asked)):
        return _carried(again, carrying)
    batches = (aim.batch,) if aim.batch is not None else None if aim.at_ms is not None else ()
    origin = open_origin(files, absolute(path), batches)
    goal = _goal(origin, aim, carrying)
    place = _sink_place(origin, aim.sink, carrying)
    plan = plan_rewind(origin, goal, aim.keep_identity, place)
    plan = replace(plan, options={**plan.options, "kafka": aim.kafka, "accept": list(aim.accept)})
    return _carried(seal(plan), carrying)


def _goal(origin: Origin, aim: Aim, carrying: Carrying) -> Goal:
    if aim.offsets_file is not None:
        given = parse_given(_bytes_of(aim.offsets_file), origin.checkpoint, aim.offsets_file)
        goal = to_offsets(origin, given)
    elif aim.batch is not None:
        goal = to_batch(origin, aim.batch)
    else:
        assert aim.at_ms is not None
        goal = _goal_by_time(origin, aim, aim.at_ms, carrying)
    if aim.kafka is None:
        return goal
    left = ask_reach(_sources_at(origin, goal), aim.kafka, aim.accept)
    return replace(goal, notes=(*goal.notes, *left))


def _goal_by_time(origin: Origin, aim: Aim, at_ms: int, carrying: Carrying) -> Goal:
    """By the log where it reaches so far; beyond it the sources are asked."""
    try:
        batch = choose_batch(origin.checkpoint, None, at_ms)
    except BatchPurged:
        past = offsets_at(origin, at_ms, Whom(aim.kafka, aim.table, carrying.storage))
        notes = require_reach(past.reach, aim.accept)
        return by_time(to_offsets(origin, past.offsets), at_ms, *notes)
    goal = to_batch(origin, batch, "--to-time")
    return by_time(goal, at_ms, planned_at(origin, batch, at_ms))


def _sources_at(origin: Origin, goal: Goal) -> list[SourceOffset]:
    return [read_source_offset(name, text) for name, text in goal.entry.offsets]


def _repeated(target: Files, verb: str, asked: Mapping[str, Any]) -> Plan | None:
    """A change in place has changed what it would be planned from: its journal knows it."""
    said = {key: value for key, value in asked.items() if value is not None}
    for record in reversed(journal.read_records(target)):
        options = record.plan.options
        if (
            record.plan.verb == verb
            and all(options.get(key) == value for key, value in said.items())
            and _can_repeat(target, record)
        ):
            return record.plan
    return None


def _sink_place(origin: Origin, sink: str | None, carrying: Carrying) -> SinkPlace | None:
    if sink is not None:
        return _place_of_sink(sink, carrying)
    known = origin.sink
    if known is None or known.kind not in FILE_SINKS or known.path is None:
        return None
    try:
        files = open_files(known.path, carrying.storage)
        there = bool(files.level("_spark_metadata").files)
    except FloodmarkError:
        return None
    return (absolute(known.path), files) if there else None


def _place_of_sink(sink: str, carrying: Carrying) -> SinkPlace:
    return absolute(sink), open_files(absolute(sink), carrying.storage)


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot read it ({error.strerror})", do="Check the path of the file."
        ) from None


def back_up(
    path: str, repository: str, retention: Retention, carrying: Carrying
) -> tuple[Change, BackupResult | None]:
    refuse_overlap(path, repository)
    files = open_files(absolute(path), carrying.storage)
    options: dict[str, object] = {
        "keep_last": retention.keep_last,
        "keep_daily": retention.keep_daily,
    }
    plan = seal(plan_backup(files, absolute(path), absolute(repository), options))
    return _backed_up(plan, carrying)


def _backed_up(plan: Plan, carrying: Carrying) -> tuple[Change, BackupResult | None]:
    if not carrying.execute:
        return Change(plan), None
    retention = Retention(plan.options["keep_last"], plan.options["keep_daily"])
    places = places_of(plan, carrying.storage)
    refuse_another_query(places.origin, plan)
    try:
        done = take_backup(places.origin, plan.origin, places.target, retention)
    except OSError as error:
        raise CannotWrite(
            f"{plan.target} cannot be written to",
            str(error),
            "No snapshot was made, and the earlier ones are whole. Try again.",
        ) from None
    words = f"Snapshot {done.snapshot.id}: {done.new_bytes} of {done.snapshot.bytes} bytes are new."
    if done.removed_snapshots:
        words += f" {done.removed_snapshots} older snapshots are gone."
    return Change(plan, True, words), done


def check_repository(repository: str, storage: Storage | None) -> tuple[int, tuple[Damage, ...]]:
    """How many snapshots there are, and what is wrong with them."""
    files = open_files(absolute(repository), storage)
    open_repository(files)
    return len(snapshots(files)), check(files)


def list_snapshots(repository: str, storage: Storage | None) -> tuple[Snapshot, ...]:
    files = open_files(absolute(repository), storage)
    open_repository(files)
    return snapshots(files)


def restore(
    repository: str, path: str, snapshot: str | None, accept: Sequence[str], carrying: Carrying
) -> Change:
    refuse_overlap(repository, path)
    files = open_files(absolute(repository), carrying.storage)
    open_repository(files)
    target = open_files(absolute(path), carrying.storage)
    chosen = choose_snapshot(files, snapshot)
    if again := _repeated(target, "restore", {"snapshot": chosen.id}):
        return _carried(again, carrying)
    journal.refuse_unfinished(target)
    plan = plan_restore(files, absolute(repository), target, absolute(path), chosen, accept)
    return _carried(seal(plan), carrying)


def places_of(plan: Plan, storage: Storage | None) -> Places:
    return Places(
        open_files(plan.origin, storage),
        open_files(plan.target, storage),
        open_files(plan.sink, storage) if plan.sink else None,
    )


def _carried(plan: Plan, carrying: Carrying) -> Change:
    if not carrying.execute:
        target = open_files(plan.target, carrying.storage)
        record = journal.read_record(target, plan)
        done = record is not None and record.stage is Stage.FINISHED
        return Change(plan, words=_DONE if done else "")
    outcome = _execute(plan, carrying)
    return Change(outcome.plan, True, outcome.words)


def _execute(plan: Plan, carrying: Carrying) -> Outcome:
    refuse_unaccepted(plan)
    return carry_out(
        plan,
        places_of(plan, carrying.storage),
        carrying.wait_seconds,
        carrying.clock,
        carrying.progress,
        carrying.rewriter or _rewriter(plan),
    )


def _rewriter(plan: Plan) -> Rewriter | None:
    if plan.verb in ("migrate", "bootstrap"):
        from floodmark.changes.reshape_rewriter import ReshapeRewriter

        return ReshapeRewriter()
    if plan.verb not in ("repartition", "convert"):
        return None
    from floodmark.changes.state_rewriter import StateRewriter

    return StateRewriter()


def save_plan(plan: Plan, path: str) -> None:
    try:
        Path(path).write_bytes(render_plan(plan))
    except OSError as error:
        raise WrongUse(
            f"{path}: the plan cannot be saved there ({error.strerror})",
            do="Name a file in a folder that is there and may be written to.",
        ) from None


def read_plan(path: str) -> Plan:
    return parse_plan(_bytes_of(path), path)


def apply_saved(path: str, carrying: Carrying) -> Change:
    plan = read_plan(path)
    target = open_files(plan.target, carrying.storage)
    if plan.verb == "undo":
        require_fresh(target, plan)
        return take_back(plan.target, carrying)
    if plan.verb == "forget":
        require_same_kept(target, plan.target, plan)
        return forget_kept(plan.target, carrying)
    if plan.verb == "backup":
        return _backed_up(plan, carrying)[0]
    outcome = _execute(plan, carrying)
    return Change(outcome.plan, True, outcome.words)


def take_back(path: str, carrying: Carrying) -> Change:
    target = open_files(absolute(path), carrying.storage)
    require_place(target)
    if carrying.execute and (settled := settle(target, absolute(path))):
        return Change(settled, True, "It was taken back already.")
    plan = plan_undo(target, absolute(path))
    if not carrying.execute:
        return Change(plan)
    outcome = undo(target, lambda plan: places_of(plan, carrying.storage), carrying.clock)
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
            f"{path}: cannot delete", str(error), "Repeat it: what is left goes then."
        ) from None
