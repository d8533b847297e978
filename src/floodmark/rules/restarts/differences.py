"""Finds where two plans differ, and which state each difference feeds. Pure.

Both trees are walked together from the sink. Everything that is not equal is a difference of some
kind. One rule judges each kind; what no other rule knows is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.plan.tree import KEY_ORDER, Expression, Fields, Input, PlanStep, PlanTree
from floodmark.checkpoint.plan.words import words
from floodmark.rules.restarts.difference_words import (
    GROUPING,
    body_words,
    changed_words,
    digest_sentence,
    field_sentence,
    listed,
    named_step,
    role_title,
    role_words,
    state_words,
    without_body,
)
from floodmark.rules.restarts.placement import acts_below, moved_below, moved_marks
from floodmark.rules.restarts.windows import has_windows, without_windows


class DifferenceKind(str, Enum):
    KEYS = "keys"
    FUNCTIONS = "functions"
    FILTER = "filter"
    JOIN_TYPE = "join type"
    JOIN_CONDITION = "join condition"
    JOIN_COLUMNS = "join columns"
    LIMIT = "limit"
    TIMEOUT = "timeout"
    CODE = "code"
    """The body of a function that keeps state."""
    OPERATORS = "operators"
    ROWS = "rows"
    """The rows that reach a state are computed in another way."""
    OUTPUT = "output"
    """Changes after the last state: they reach no state."""


@dataclass(frozen=True)
class PlanDifference:
    kind: DifferenceKind
    what: str
    """A sentence with the new and the old form."""
    where: str
    feeds: str | None = None
    """The name of Spark's class of the stateful step that it reaches; None if it reaches none."""
    columns: tuple[str, ...] = ()


_STATE_COLUMNS = {"keys": DifferenceKind.KEYS, "functions": DifferenceKind.FUNCTIONS}
_OTHER_WINDOWS = "The windows have another length, slide or start."


def differences(old: PlanTree, new: PlanTree) -> tuple[PlanDifference, ...]:
    """Return the differences in the order of the steps, from the sink; none if the plans are
    the same.
    """
    if old.salt is not None:
        new = new.hidden(old.salt)
    found = list(_inputs(old.root, new.root, None))
    if old.tries != new.tries:
        found.append(_tries(old, new))
    if not found and old.columns != new.columns:
        found.append(_output(old.columns, new.columns))
    fed = any(one.feeds is not None for one in found)
    if not fed and moved_marks(old, new):
        what = "A watermark stands before other steps than before."
        found.append(
            PlanDifference(DifferenceKind.ROWS, what, "the plan's watermark", _first_state(new))
        )
    if not fed and old.canonical != new.canonical and (old.unseen or new.unseen):
        found.append(_unseen(old, new))
    return tuple(found)


def untold(old: PlanTree, new: PlanTree) -> PlanDifference | None:
    """Return a difference for parts of changed code that cannot be compared; None if there are
    none.
    """
    parts = sorted({*old.untold, *new.untold})
    if not parts:
        return None
    fed = _first_state(new)
    what = f"Nobody can compare {', '.join(parts)}, and the code has changed."
    return PlanDifference(
        DifferenceKind.ROWS if fed else DifferenceKind.OUTPUT, what, "the plan", fed
    )


def _tries(old: PlanTree, new: PlanTree) -> PlanDifference:
    came, went = ", ".join(new.tries) or "none", ", ".join(old.tries) or "none"
    what = f"The functions that give null instead of an error are {came}; they were {went}."
    fed = _first_state(new)
    return PlanDifference(
        DifferenceKind.ROWS if fed else DifferenceKind.OUTPUT, what, "the plan", fed
    )


def _unseen(old: PlanTree, new: PlanTree) -> PlanDifference:
    parts = ", ".join(sorted({*old.unseen, *new.unseen}))
    fed = _first_state(new)
    return PlanDifference(
        DifferenceKind.ROWS if fed else DifferenceKind.OUTPUT,
        f"Spark says that the plans differ, but not how: {parts} cannot be read.",
        "the plan",
        fed,
    )


def _first_state(tree: PlanTree) -> str | None:
    return next((step.kind for step in tree.stateful), None)


def _output(old: tuple[Expression, ...], new: tuple[Expression, ...]) -> PlanDifference:
    changed = [one for one in new if one not in old]
    made = f": {listed(changed)}" if changed else ""
    return PlanDifference(
        DifferenceKind.OUTPUT,
        f"The columns for the sink are made in another way{made}.",
        "the plan's output",
    )


def _inputs(old: Input, new: Input, feeds: str | None) -> Iterator[PlanDifference]:
    came = [one for one in new.conditions if one not in old.conditions]
    went = [one for one in old.conditions if one not in new.conditions]
    if came or went:
        said = [f"adds {words(one)}" for one in came] + [f"leaves out {words(one)}" for one in went]
        yield PlanDifference(
            DifferenceKind.FILTER,
            f"The new code {', '.join(said)}.",
            "the plan's filters",
            feeds or _reached(old.step, new.step, (*came, *went)),
        )
    yield from _steps(old.step, new.step, feeds)


def _reached(old: PlanStep, new: PlanStep, conditions: tuple[Expression, ...]) -> str | None:
    """Return the state that the filters reach; a new state has nothing of the old filters in it."""
    return moved_below(new, conditions) if _keeps_state(old) else None


def _keeps_state(step: PlanStep) -> bool:
    return any(one.stateful for one in step.walk())


def _steps(old: PlanStep, new: PlanStep, feeds: str | None) -> Iterator[PlanDifference]:
    if old == new:
        return
    if feeds is None and _keeps_state(old) and _keeps_state(new):
        feeds = acts_below(old) or acts_below(new)
    if old.stateful or new.stateful:
        if old.kind != new.kind or old.stateful != new.stateful:
            yield _other_operator(old, new)
            return
        yield from _stateful(old, new)
        feeds = new.kind
    elif old.kind != new.kind or len(old.inputs) != len(new.inputs):
        yield _other_step(old, new, feeds)
        yield from _below(old, new)
        return
    else:
        yield from _plain_step(old, new, feeds)
    if len(old.inputs) != len(new.inputs):
        yield _other_step(old, new, feeds)
        return
    for before, after in zip(old.inputs, new.inputs, strict=True):
        yield from _inputs(before, after, feeds)


def _other_operator(old: PlanStep, new: PlanStep) -> PlanDifference:
    return PlanDifference(
        DifferenceKind.OPERATORS,
        f"State was kept by {state_words(old.kind)}; now {named_step(new)} is in its place.",
        "the plan's operators",
        new.kind if new.stateful else old.kind,
    )


def _other_step(old: PlanStep, new: PlanStep, feeds: str | None) -> PlanDifference:
    what = f"The rows were made by {named_step(old)}; now {named_step(new)} is in its place."
    if feeds is not None:
        return PlanDifference(
            DifferenceKind.ROWS, what, f"the plan, below {state_words(feeds)}", feeds
        )
    return PlanDifference(DifferenceKind.OUTPUT, what, "the plan's output")


def _below(old: PlanStep, new: PlanStep) -> Iterator[PlanDifference]:
    """Compare the stateful steps below, matched by their order, as Spark numbers them."""
    before, after = list(_nearest_state(old)), list(_nearest_state(new))
    if [one.step.kind for one in before] != [one.step.kind for one in after]:
        yield PlanDifference(
            DifferenceKind.OPERATORS,
            f"State is kept by {_kinds(after)}, and was kept by {_kinds(before)}.",
            "the plan's operators",
            (after or before)[0].step.kind,
        )
        return
    for one, other in zip(before, after, strict=True):
        yield from _inputs(one, other, None)


def _nearest_state(step: PlanStep) -> Iterator[Input]:
    if step.stateful:
        yield Input(step)
        return
    for one in step.inputs:
        yield from (one,) if one.step.stateful else _nearest_state(one.step)


def _kinds(found: list[Input]) -> str:
    return ", ".join(one.step.kind for one in found) or "nothing"


def _stateful(old: PlanStep, new: PlanStep) -> Iterator[PlanDifference]:
    where = f"the plan, {state_words(new.kind)}"
    yield from _fields(old, new, where)
    for role in dict.fromkeys(role for role, _ in (*old.expressions, *new.expressions)):
        before, after = old.role(role), new.role(role)
        if role == KEY_ORDER and set(before) != set(after):
            continue  # the condition's own difference covers it
        if before != after:
            yield from _role(role, before, after, new, where)


def _role(
    role: str,
    before: tuple[Expression, ...],
    after: tuple[Expression, ...],
    step: PlanStep,
    where: str,
) -> Iterator[PlanDifference]:
    kind = _kind_of_role(role, step)
    if kind is DifferenceKind.CODE and without_body(before) == without_body(after):
        yield PlanDifference(kind, body_words(before, after), where, step.kind)
        return
    if kind is DifferenceKind.CODE:
        kind = DifferenceKind.ROWS
    what = f"{role_words(role, step)} {changed_words(before, after)}"
    if kind is DifferenceKind.KEYS and without_windows(before) == without_windows(after):
        what = _OTHER_WINDOWS
    yield PlanDifference(kind, what, where, step.kind, tuple(words(one) for one in after))


def _kind_of_role(role: str, step: PlanStep) -> DifferenceKind:
    if role in _STATE_COLUMNS:
        return _STATE_COLUMNS[role]
    if role in GROUPING:
        return DifferenceKind.KEYS
    if role == "functionExpr":
        return DifferenceKind.CODE
    if step.kind == "Join":
        return (
            DifferenceKind.JOIN_CONDITION
            if role in ("condition", KEY_ORDER)
            else DifferenceKind.JOIN_COLUMNS
        )
    if step.kind == "GlobalLimit":
        return DifferenceKind.LIMIT
    return DifferenceKind.ROWS


def _fields(old: PlanStep, new: PlanStep, where: str) -> Iterator[PlanDifference]:
    for name, was, now in _field_changes(old.fields, new.fields):
        kind = {"type": DifferenceKind.JOIN_TYPE, "timeout": DifferenceKind.TIMEOUT}.get(
            name, DifferenceKind.ROWS
        )
        if name in ("stateType", "outputMode", "timeMode"):
            continue  # other rules compare these with the checkpoint
        yield PlanDifference(kind, field_sentence(name, was, now), where, new.kind)


def _field_changes(old: Fields, new: Fields) -> Iterator[tuple[str, str | None, str | None]]:
    before, after = dict(old), dict(new)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _plain_step(old: PlanStep, new: PlanStep, feeds: str | None) -> Iterator[PlanDifference]:
    said = [
        *(
            digest_sentence(new.kind, change[0]) or field_sentence(*change)
            for change in _field_changes(old.fields, new.fields)
        ),
        *(
            f"{role_title(role)} {changed_words(old.role(role), new.role(role))}"
            for role in dict.fromkeys(role for role, _ in (*old.expressions, *new.expressions))
            if old.role(role) != new.role(role)
        ),
    ]
    if not said:
        return
    if feeds is not None and (has_windows(old) or has_windows(new)):
        yield PlanDifference(DifferenceKind.KEYS, _OTHER_WINDOWS, "the plan's windows", feeds)
        return
    kind = DifferenceKind.OUTPUT if feeds is None else DifferenceKind.ROWS
    below = "the plan's output" if feeds is None else f"the plan, below {state_words(feeds)}"
    yield PlanDifference(
        kind, f"{named_step(new).capitalize()} has changed. {' '.join(said)}", below, feeds
    )
