"""Opens the locations of a plan, and executes it if the user asks for that.

`execute` executes the steps. `Change` is the result: the plan, and what became of it.
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
from floodmark.changes.plan.steps import RewriteState
from floodmark.changes.same_change import recorded
from floodmark.screen import fitted, table_html
from floodmark.storage.file_copy import with_folder_mode, with_modes_of
from floodmark.storage.files import Files, WritableFiles, open_files
from floodmark.storage.last_start import latest_note

Storage = Mapping[str, Any]
_DONE = "This was carried out already, and stands as it was left: there is nothing to do."


@dataclass(frozen=True)
class Carrying:
    """Options for executing a change; without `execute` it is only planned."""

    execute: bool = False
    wait_seconds: float | None = None
    storage: Storage | None = None
    clock: Clock | None = None
    rewriter: Rewriter | None = None
    """Rewrites state instead of this process, such as a Spark job."""
    read_data: bool = False
    """True to read the needed state, and to compare copies by their content."""
    accept: tuple[str, ...] = ()
    """Names that the user accepts, for verbs without such names of their own."""
    watch_seconds: float = 0.0
    """A change in place first watches the checkpoint for this time, and reports what it saw."""
    original: str | None = None
    """The user's checkpoint, where the change begins with a copy of it: code names this one."""


@dataclass(frozen=True)
class Change:
    """A plan, and what became of it."""

    plan: Plan
    """The effect of the change."""
    executed: bool = False
    """Whether it was carried out."""
    words: str = ""
    """A sentence about what was done."""
    carrying: Carrying | None = field(default=None, repr=False, compare=False)
    """The options of the call that made the plan, such as the storage's, for `apply`."""

    @property
    def as_json(self) -> dict[str, Any]:
        """The plan, and whether it was carried out, as JSON data."""
        return {"plan": plan_to_json(self.plan), "executed": self.executed}

    def __repr__(self) -> str:
        from floodmark.changes.plan.text import change_text  # commands print plans another way

        return fitted(change_text(self.plan, self.executed, self.words))

    def _repr_html_(self) -> str:
        from floodmark.changes.plan.text import change_rows

        steps, after = change_rows(self.plan, self.executed, self.words)
        return table_html(self.plan.title, ("do", "path", "why"), steps, *after)

    def apply(self, *, accept: str | Iterable[str] = ()) -> Change:
        """Execute the plan, if everything is still as it was when it was made.

        `accept` gives the names that the plan needs to have accepted.
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
    """Plan a new checkpoint from the one at `path`; `batches` are the entries that it needs."""
    refuse_overlap(path, new)
    origin_files = open_files(absolute(path), carrying.storage)
    return make(_with_sink(open_origin(origin_files, absolute(path), batches), carrying))


def _with_sink(origin: Origin, carrying: Carrying) -> Origin:
    """Ask the sink that the notes name for its newest batch, as another copy may have run on."""
    if origin.sink is None or origin.sink.path is None:
        return origin
    from floodmark.changes.sinks.known_sink import known_sink
    from floodmark.storage.untrusted_places import opener

    opened = opener([origin.location], carrying.storage)
    known = known_sink(latest_note(origin.files), None, opened)
    return replace(origin, sink_newest=known.newest_of(origin.checkpoint.query_id))


def begin_new_place(plan: Plan, carrying: Carrying) -> Change:
    """Begin a plan for an empty location; only remains of this same plan may be there."""
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
    """Let new files be readable for those who could read the files that they are made from."""
    if plan.in_place:
        return with_modes_of(target, target)
    if plan.verb == "restore":
        return with_folder_mode(target, plan.options.get(FOLDER_MODE))
    return with_modes_of(target, origin)


def apply_if_asked(plan: Plan, carrying: Carrying) -> Change:
    """Return the plan; execute it if `execute` is set and it has any step."""
    target = open_files(plan.target, carrying.storage)
    record = journal.read_record(target, plan)
    if record is None:
        plan = doubted(plan, target, carrying)
    if not (carrying.execute and plan.steps):
        done = record is not None and record.stage is Stage.FINISHED
        return Change(plan, words=_DONE if done else "")
    return execute(plan, carrying)


def doubted(plan: Plan, target: WritableFiles, carrying: Carrying) -> Plan:
    """Add what the user must accept where a query may be running on the checkpoint."""
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
    """Return the file sink's folder, if the user named it."""
    if sink is None:
        return None
    return absolute(sink), open_files(absolute(sink), carrying.storage)
