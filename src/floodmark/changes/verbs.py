"""From what a user asks to a plan, and from a plan to what is done. Opens the places."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.addresses import has_secret
from floodmark.changes import journal
from floodmark.changes.apply import (
    Outcome,
    Places,
    Progress,
    Rewriter,
    carry_out,
    refuse_not_empty,
)
from floodmark.changes.consequences import FILE_SINKS
from floodmark.changes.copy import plan_copy
from floodmark.changes.course import Course, Wish, choose_course
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.gone_input import gone_input
from floodmark.changes.journal import Stage
from floodmark.changes.origin import Origin, latest_note, open_origin
from floodmark.changes.plan import Plan, parse_plan, plan_to_json, render_plan, seal
from floodmark.changes.reach import require_reach
from floodmark.changes.rehome import Moves, moved_place, parse_moves
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
from floodmark.errors import FloodmarkError, StoppedMidway, WrongUse
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
    read_data: bool = False
    """Reads the state that is needed, and compares what is copied by its content."""


def absolute(location: str) -> str:
    """A plan is carried out from any folder."""
    path = local_path(str(location))
    if path is None and has_secret(str(location)):
        raise WrongUse(
            f"{location}: the address holds a password or a signature",
            "A plan and its journal keep addresses, and secrets must not lie about in them.",
            "Leave it out of the address, and give it as --storage KEY=VALUE, or by the "
            "environment of the storage's driver.",
        )
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
        asked, notes = _ask_kafka(origin, wish)
        plan = plan_upgrade(origin, absolute(new), asked)
        course = choose_course(origin.checkpoint, asked)
        read = read_state(origin, course.after, carrying)
        gone = _ask_input(origin, asked, course, carrying)
        return replace(plan, notes=(*checked, *notes, *gone, *read, *plan.notes))

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
        plan = plan_copy(origin, absolute(dest), moves, new_identity, place)
        read = read_state(origin, origin.checkpoint.committed_batch, carrying)
        return replace(plan, notes=(*read, *plan.notes))

    return to_new_place("copy", path, dest, make, carrying, ())


def read_state(origin: Origin, batch: int | None, carrying: Carrying) -> tuple[str, ...]:
    """The state after the batch, decoded where that is asked for; a note of it."""
    if not carrying.read_data:
        return ()
    from floodmark.changes.content import require_readable_state

    count = require_readable_state(origin, batch)
    return (f"The state after batch {batch} was read: {count} files, all sound.",) if count else ()


def _rehomed_sink(
    origin: Origin, moves: Moves, sink: str | None, carrying: Carrying
) -> SinkPlace | None:
    """The output folder as it lies now: named, or the noted one where a move is about it."""
    known = origin.sink
    if sink is None and known is not None and known.kind in FILE_SINKS and known.path is not None:
        sink = moved_place(f"{known.path.rstrip('/')}/", moves)
    return place_of_sink(sink, carrying) if sink is not None else None


def _ask_kafka(origin: Origin, wish: Wish) -> tuple[Wish, tuple[str, ...]]:
    if wish.kafka is None and not wish.by_time:
        return wish, ()
    from floodmark.changes.broker import ask_kafka
    from floodmark.changes.past import noted_options

    note = latest_note(origin.files) or {}
    servers = [
        noted_options(note, number).get("kafka.bootstrap.servers")
        for number in range(len(origin.checkpoint.sources))
    ]
    asked = ask_kafka(origin.checkpoint, wish, next(filter(None, servers), None))
    return asked.wish, asked.notes


def _ask_input(origin: Origin, wish: Wish, course: Course, carrying: Carrying) -> tuple[str, ...]:
    """Whether the input files of batches that are planned anew are still there."""
    if course.after == course.highest or course.in_flight is not None:
        return ()
    begins = None if course.after is None else origin.checkpoint.offsets[course.after]
    gone = gone_input(
        origin.files,
        origin.checkpoint,
        begins,
        lambda place: open_files(place, carrying.storage),
    )
    return require_reach(gone, wish.accept)


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
    return carried(recorded or plan, carrying)


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


def repeated(target: Files, verb: str, asked: Mapping[str, Any]) -> Plan | None:
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


def sink_place(origin: Origin, sink: str | None, carrying: Carrying) -> SinkPlace | None:
    if sink is not None:
        return place_of_sink(sink, carrying)
    known = origin.sink
    if known is None or known.kind not in FILE_SINKS or known.path is None:
        return None
    try:
        files = open_files(known.path, carrying.storage)
        there = bool(files.level("_spark_metadata").files)
    except FloodmarkError:
        return None
    return (absolute(known.path), files) if there else None


def place_of_sink(sink: str, carrying: Carrying) -> SinkPlace:
    return absolute(sink), open_files(absolute(sink), carrying.storage)


def bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot read it ({error.strerror})", do="Check the path of the file."
        ) from None


def places_of(plan: Plan, storage: Storage | None) -> Places:
    return Places(
        open_files(plan.origin, storage),
        open_files(plan.target, storage),
        open_files(plan.sink, storage) if plan.sink else None,
    )


def carried(plan: Plan, carrying: Carrying) -> Change:
    if not carrying.execute:
        target = open_files(plan.target, carrying.storage)
        record = journal.read_record(target, plan)
        done = record is not None and record.stage is Stage.FINISHED
        return Change(plan, words=_DONE if done else "")
    outcome = _execute(plan, carrying)
    return Change(outcome.plan, True, outcome.words)


def _execute(plan: Plan, carrying: Carrying) -> Outcome:
    from floodmark.changes.repair import refuse_unaccepted

    refuse_unaccepted(plan)
    return carry_out(
        plan,
        places_of(plan, carrying.storage),
        carrying.wait_seconds,
        carrying.clock,
        carrying.progress,
        carrying.rewriter or _rewriter(plan),
        carrying.read_data,
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
    return parse_plan(bytes_of(path), path)


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
        from floodmark.changes.snapshots import backed_up

        return backed_up(plan, carrying)
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
