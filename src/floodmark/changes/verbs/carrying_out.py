"""Builds and executes the plans of the changing verbs. Opens the places."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from floodmark.addresses import has_secret
from floodmark.changes import journal
from floodmark.changes.apply import (
    Outcome,
    PlanPlaces,
    Progress,
    Rewriter,
    carry_out,
    refuse_not_empty,
)
from floodmark.changes.carry.origin import Origin, open_origin
from floodmark.changes.carry.rehome import Moves, moved_place, parse_moves
from floodmark.changes.carry.resume_point import Course, UpgradeOptions, choose_course
from floodmark.changes.carry.sink_log import SinkPlace
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.in_use import Clock, with_doubt
from floodmark.changes.journal import Stage
from floodmark.changes.named_places import (
    not_named,
    require_named_origin,
    require_named_sink,
    same_change,
    same_place,
)
from floodmark.changes.plan import FOLDER_MODE, REWRITE, Plan, plan_to_json, render_plan, seal
from floodmark.changes.plan_parsing import parse_plan
from floodmark.changes.plan_text import change_text
from floodmark.changes.planners.copy import plan_copy
from floodmark.changes.planners.upgrade import plan_upgrade
from floodmark.changes.sources.gone_input import gone_input
from floodmark.changes.sources.out_of_reach import require_reach
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
from floodmark.connectors.files.offset import FILE_SINKS
from floodmark.errors import StoppedMidway, WrongUse
from floodmark.limits import check_size
from floodmark.screen import fitted
from floodmark.storage.copying import with_folder_mode, with_modes_of
from floodmark.storage.files import Files, WritableFiles, local_path, open_files, place_name
from floodmark.storage.modes import open_private
from floodmark.storage.noted_places import opener
from floodmark.storage.starts import latest_note

Storage = Mapping[str, Any]
_DONE = "This was carried out already, and stands as it was left: there is nothing to do."


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
    accept: tuple[str, ...] = ()
    """What is accepted by name, for verbs that have no names of their own."""
    watch_seconds: float = 0.0
    """A change in place watches the checkpoint for so long first, and says what it saw."""


@dataclass(frozen=True)
class Change:
    """A plan, and what became of it."""

    plan: Plan
    executed: bool = False
    words: str = ""
    carrying: Carrying | None = field(default=None, repr=False, compare=False)
    """What `apply` takes over from the call that made the plan: the storage's options, say."""

    @property
    def as_json(self) -> dict[str, Any]:
        return {"plan": plan_to_json(self.plan), "executed": self.executed}

    def __repr__(self) -> str:
        return fitted(change_text(self.plan, self.executed, self.words))

    def apply(self, *, accept: str | Iterable[str] = ()) -> Change:
        """Carries the plan out, if everything is still as it was when it was made.

        `accept` names what the plan wants to have accepted.
        """
        if self.executed:
            return self
        names = (accept,) if isinstance(accept, str) else tuple(accept)
        options = {**self.plan.options}
        options["accept"] = sorted({*options.get("accept", ()), *names})
        plan = seal(replace(self.plan, options=options)) if names else self.plan
        carrying = replace(self.carrying or Carrying(), execute=True)
        return apply_plan(plan, carrying, plan.sink)


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
    request: UpgradeOptions,
    carrying: Carrying,
    check: Callable[[Origin], Sequence[str]] | None = None,
) -> Change:
    """`check` looks at the new code, and says what it found right."""

    def make(origin: Origin) -> Plan:
        checked = tuple(check(origin)) if check else ()
        asked, notes = _ask_kafka(origin, request)
        plan = plan_upgrade(origin, absolute(new), asked)
        course = choose_course(origin.checkpoint, asked)
        read = read_state(origin, course.after, carrying)
        gone = _ask_input(origin, asked, course, carrying)
        return replace(plan, notes=(*checked, *notes, *gone, *read, *plan.notes))

    batches = () if request.from_batch is None else (request.from_batch,)
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
        place = place_of_sink(sink, carrying) if moves and sink is not None else None
        plan = plan_copy(origin, absolute(dest), moves, new_identity, place)
        read = read_state(origin, origin.checkpoint.committed_batch, carrying)
        unnamed = _moved_sink(origin, moves) if sink is None else ()
        return replace(plan, notes=(*read, *unnamed, *plan.notes))

    return to_new_place("copy", path, dest, make, carrying, ())


def read_state(origin: Origin, batch: int | None, carrying: Carrying) -> tuple[str, ...]:
    """The state after the batch, decoded where that is asked for; a note of it."""
    if not carrying.read_data:
        return ()
    from floodmark.changes.read_data import require_readable_state

    count = require_readable_state(origin, batch)
    return (f"The state after batch {batch} was read: {count} files, all sound.",) if count else ()


def _moved_sink(origin: Origin, moves: Moves) -> tuple[str, ...]:
    """Says so where the notes name an output folder that a move is about; it is not touched."""
    known = origin.sink
    if known is None or known.kind not in FILE_SINKS or known.path is None:
        return ()
    place = moved_place(f"{known.path.rstrip('/')}/", moves)
    return (not_named(place.rstrip("/")),) if place is not None else ()


def _ask_kafka(origin: Origin, request: UpgradeOptions) -> tuple[UpgradeOptions, tuple[str, ...]]:
    if request.kafka is None and not request.by_time:
        return request, ()
    from floodmark.changes.sources.earlier_positions import noted_options
    from floodmark.changes.sources.kafka_cluster import ask_kafka

    note = latest_note(origin.files) or {}
    servers = [
        noted_options(note, number).get("kafka.bootstrap.servers")
        for number in range(len(origin.checkpoint.sources))
    ]
    asked = ask_kafka(origin.checkpoint, request, next(filter(None, servers), None))
    return asked.request, asked.notes


def _ask_input(
    origin: Origin, request: UpgradeOptions, course: Course, carrying: Carrying
) -> tuple[str, ...]:
    """Whether the input files of batches that are planned anew are still there."""
    if course.after == course.highest or course.in_flight is not None:
        return ()
    begins = None if course.after is None else origin.checkpoint.offsets[course.after]
    gone = gone_input(
        origin.files,
        origin.checkpoint,
        begins,
        opener([origin.files.root], carrying.storage),
        request.kafka is not None,
    )
    return require_reach(gone, request.accept)


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
        if same_change(record.plan, plan) and _can_repeat(target, record):
            return record.plan
    return None


def _can_repeat(target: Files, record: journal.Record) -> bool:
    if record.stage is Stage.BEGUN:
        return True
    return record.stage is Stage.FINISHED and fingerprint(target).digest == record.after


def refuse_overlap(path: str, new: str) -> None:
    first, second = place_name(path), place_name(new)
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


def repeated(
    target: Files, verb: str, origin: str, location: str, asked: Mapping[str, Any]
) -> Plan | None:
    """The same command, given again: its journal knows the plan, which the change has overtaken.

    The journal may be a stranger's. So its plan has to be what this command asks for: the same
    verb, options, origin and place, and a sink that was named. `None` of an option stands for an
    option that was not given, and of which the plan may say more; a sink is named or not.
    """
    said = {key: value for key, value in asked.items() if value is not None}
    sink = asked.get("sink")
    for record in reversed(journal.read_records(target)):
        plan = record.plan
        if (
            plan.verb == verb
            and all(plan.options.get(key) == value for key, value in said.items())
            and same_place(plan.target, location)
            and same_place(plan.origin, origin)
            and (plan.sink is None or plan.sink == sink)
            and _can_repeat(target, record)
        ):
            return plan
    return None


def unnamed_sink(origin: Origin) -> tuple[str, ...]:
    """Says so where the notes of the last start name a file sink; its log is not touched."""
    known = origin.sink
    if known is None or known.kind not in FILE_SINKS or known.path is None:
        return ()
    return (not_named(known.path),)


def place_of_sink(sink: str, carrying: Carrying) -> SinkPlace:
    return absolute(sink), open_files(absolute(sink), carrying.storage)


def bytes_of(path: str) -> bytes:
    """A file that the user names: a saved plan, or offsets."""
    try:
        check_size(path, Path(path).stat().st_size, "plan")
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot read it ({error.strerror})", do="Check the path of the file."
        ) from None


def places_of(plan: Plan, storage: Storage | None) -> PlanPlaces:
    origin, target = open_files(plan.origin, storage), open_files(plan.target, storage)
    return PlanPlaces(
        origin,
        _readable_as_before(plan, origin, target),
        open_files(plan.sink, storage) if plan.sink else None,
    )


def _readable_as_before(plan: Plan, origin: Files, target: WritableFiles) -> WritableFiles:
    """What is written can be read by those who could read what it is made from."""
    if plan.in_place:
        return with_modes_of(target, target)
    if plan.verb == "restore":
        return with_folder_mode(target, plan.options.get(FOLDER_MODE))
    return with_modes_of(target, origin)


def carried(plan: Plan, carrying: Carrying) -> Change:
    target = open_files(plan.target, carrying.storage)
    record = journal.read_record(target, plan)
    if record is None:
        plan = doubted(plan, target, carrying)
    if not carrying.execute:
        done = record is not None and record.stage is Stage.FINISHED
        return Change(plan, words=_DONE if done else "")
    outcome = _execute(plan, carrying)
    return Change(outcome.plan, True, outcome.words)


def doubted(plan: Plan, target: WritableFiles, carrying: Carrying) -> Plan:
    """The plan with what has to be accepted where a query may run on the checkpoint."""
    clock = carrying.clock or Clock()
    return with_doubt(
        plan, target, clock, carrying.accept, carrying.execute, carrying.watch_seconds
    )


def _execute(plan: Plan, carrying: Carrying) -> Outcome:
    from floodmark.changes.plan import refuse_unaccepted

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
    if not any(step.do == REWRITE for step in plan.steps):
        return None
    from floodmark.changes.state_rewriter import StateRewriter

    return StateRewriter()


def save_plan(plan: Plan, path: str) -> None:
    try:
        with open(path, "wb", opener=open_private) as file:
            file.write(render_plan(plan))
    except OSError as error:
        raise WrongUse(
            f"{path}: the plan cannot be saved there ({error.strerror})",
            do="Name a file in a folder that is there and may be written to.",
        ) from None


def read_plan(path: str) -> Plan:
    return parse_plan(bytes_of(path), path)


def apply_saved(path: str, carrying: Carrying, sink: str | None = None) -> Change:
    plan = read_plan(path)
    require_named_sink(plan, sink, f"floodmark apply {path}")
    return apply_plan(plan, carrying, sink)


def apply_plan(plan: Plan, carrying: Carrying, sink: str | None) -> Change:
    """`sink`: the file sink's folder, as the user named it."""
    target = open_files(plan.target, carrying.storage)
    if plan.verb == "undo":
        require_fresh(target, plan)
        accept = tuple(plan.options.get("accept", ()))
        return take_back(plan.target, replace(carrying, accept=accept), sink)
    if plan.verb == "forget":
        require_same_kept(target, plan.target, plan)
        return forget_kept(plan.target, carrying)
    if plan.verb == "backup":
        from floodmark.changes.verbs.snapshots import backed_up

        return backed_up(plan, carrying)
    outcome = _execute(plan, carrying)
    return Change(outcome.plan, True, outcome.words)


def resume(path: str, carrying: Carrying, origin: str | None, sink: str | None) -> Change:
    """Goes on with a change that stopped midway, by the journal that lies in its place.

    The journal may be a stranger's: it reads from `origin` and changes `sink` only where the user
    has named them, and they are what it says.
    """
    location = absolute(path)
    target = open_files(location, carrying.storage)
    require_place(target)
    plan = journal.begun(target).plan
    command = f"floodmark apply --resume {path}"
    require_named_sink(plan, sink, command)
    require_named_origin(plan, location, origin, command)
    if not carrying.execute:
        return Change(plan)
    outcome = _execute(plan, carrying)
    return Change(outcome.plan, True, outcome.words)


def take_back(path: str, carrying: Carrying, sink: str | None = None) -> Change:
    """`sink`: the file sink's folder, whose log the change had changed as well."""
    target = open_files(absolute(path), carrying.storage)
    require_place(target)
    if carrying.execute and (settled := settle(target, absolute(path))):
        return Change(settled, True, "It was taken back already.")
    plan = plan_undo(target, absolute(path), carrying.accept)
    if not is_unfinished(target):
        plan = doubted(plan, target, carrying)
    if not carrying.execute:
        return Change(plan)
    from floodmark.changes.plan import refuse_unaccepted

    refuse_unaccepted(plan)
    require_named_sink(plan, sink, f"floodmark undo {path}")
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
            f"{path}: cannot delete", str(error), "Repeat it: what is left goes then."
        ) from None
