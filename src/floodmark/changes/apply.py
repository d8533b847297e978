"""Opens the places of a plan and carries it out, if the user asks for that.

`execute` carries out the steps. `Change` is the result: the plan, and what became of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from floodmark.changes import journal
from floodmark.changes.carry.origin import Origin, open_origin
from floodmark.changes.carry.sink_log import SinkPlace
from floodmark.changes.execute import (
    PlanPlaces,
    Rewriter,
    carry_out,
    refuse_not_empty,
)
from floodmark.changes.in_use import Clock, with_doubt
from floodmark.changes.journal import Stage
from floodmark.changes.named_places import (
    absolute,
    refuse_overlap,
)
from floodmark.changes.plan import FOLDER_MODE, Plan, plan_to_json, refuse_unaccepted, seal
from floodmark.changes.same_change import recorded
from floodmark.changes.steps import RewriteState
from floodmark.screen import fitted, table_html
from floodmark.storage.copying import with_folder_mode, with_modes_of
from floodmark.storage.files import Files, WritableFiles, open_files
from floodmark.storage.start_notes import latest_note

Storage = Mapping[str, Any]
_DONE = "This was carried out already, and stands as it was left: there is nothing to do."


@dataclass(frozen=True)
class Carrying:
    """How a change is carried out; without `execute` it is only planned."""

    execute: bool = False
    wait_seconds: float | None = None
    storage: Storage | None = None
    clock: Clock | None = None
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
        from floodmark.changes.plan_text import change_text  # commands print plans another way

        return fitted(change_text(self.plan, self.executed, self.words))

    def _repr_html_(self) -> str:
        from floodmark.changes.plan_text import change_rows

        steps, after = change_rows(self.plan, self.executed, self.words)
        return table_html(self.plan.title, ("do", "path", "why"), steps, *after)

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
        from floodmark.changes.apply_saved import apply_plan

        return apply_plan(plan, carrying, plan.sink)


def plan_new_place(
    path: str,
    new: str,
    make: Callable[[Origin], Plan],
    carrying: Carrying,
    batches: Collection[int] | None = None,
) -> Plan:
    """`make` plans a new checkpoint from the one at `path`; `batches` are what it wants of it."""
    refuse_overlap(path, new)
    origin_files = open_files(absolute(path), carrying.storage)
    return make(_with_sink(open_origin(origin_files, absolute(path), batches), carrying))


def _with_sink(origin: Origin, carrying: Carrying) -> Origin:
    """Asks the sink that the notes name how far it is; another copy may have run on."""
    if origin.sink is None or origin.sink.path is None:
        return origin
    from floodmark.changes.repair.sink import known_sink
    from floodmark.storage.noted_places import opener

    opened = opener([origin.location], carrying.storage)
    known = known_sink(latest_note(origin.files), None, opened)
    return replace(origin, sink_newest=known.newest_of(origin.checkpoint.query_id))


def begin_new_place(plan: Plan, carrying: Carrying) -> Change:
    """A plan for a place where nothing is yet, but what this very plan has left."""
    target = open_files(plan.target, carrying.storage)
    plan = seal(plan)
    earlier = recorded(target, plan)
    if earlier is None:
        journal.refuse_unfinished(target, apart_from=plan)
        refuse_not_empty(target, plan)
    return apply_if_asked(earlier or plan, carrying)


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


def apply_if_asked(plan: Plan, carrying: Carrying) -> Change:
    """The plan; carried out if `execute` says so and it has any step."""
    target = open_files(plan.target, carrying.storage)
    record = journal.read_record(target, plan)
    if record is None:
        plan = doubted(plan, target, carrying)
    if not (carrying.execute and plan.steps):
        done = record is not None and record.stage is Stage.FINISHED
        return Change(plan, words=_DONE if done else "")
    return execute(plan, carrying)


def doubted(plan: Plan, target: WritableFiles, carrying: Carrying) -> Plan:
    """The plan with what has to be accepted where a query may run on the checkpoint."""
    clock = carrying.clock or Clock()
    return with_doubt(
        plan, target, clock, carrying.accept, carrying.execute, carrying.watch_seconds
    )


def execute(plan: Plan, carrying: Carrying) -> Change:
    refuse_unaccepted(plan)
    outcome = carry_out(
        plan,
        places_of(plan, carrying.storage),
        carrying.wait_seconds,
        carrying.clock,
        carrying.rewriter or _rewriter(plan),
        carrying.read_data,
    )
    return Change(outcome.plan, True, outcome.words)


def _rewriter(plan: Plan) -> Rewriter | None:
    if not any(isinstance(step, RewriteState) for step in plan.steps):
        return None
    from floodmark.changes.state_rewriter import StateRewriter

    return StateRewriter()


def open_sink(sink: str | None, carrying: Carrying) -> SinkPlace | None:
    """The file sink's folder, where the user names it."""
    if sink is None:
        return None
    return absolute(sink), open_files(absolute(sink), carrying.storage)
