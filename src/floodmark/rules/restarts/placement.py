"""Where a filter or a watermark acts, which is not always where the code has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from floodmark.checkpoint.plan.tree import OUTPUT, Expression, Input, PlanStep, PlanTree


def moved_below(step: PlanStep, conditions: Iterable[Expression]) -> str | None:
    """The kind of the state that Spark filters first: it moves filters down as far as it can.

    Through a join of streams; through an aggregation where one is on its keys alone.
    """
    if step.stateful and step.kind in ("Aggregate", "Distinct"):
        return step.kind if step.role("keys") and any(map(_is_on_keys, conditions)) else None
    if step.stateful:
        return step.kind if step.kind == "Join" else None
    below = (moved_below(one.step, conditions) for one in step.inputs)
    return next((one for one in below if one is not None), None)


def acts_below(step: PlanStep) -> str | None:
    """The state that a step without state reaches: Spark makes filters of its condition.

    After `totals.join(names, "k")` only keys that are in `names` may be counted at all.
    """
    if step.stateful or step.kind not in ("Join", "Generate"):
        return None
    conditions = (*step.role("condition"), *step.role("generator"))
    below = (moved_below(one.step, conditions) for one in step.inputs)
    return next((one for one in below if one is not None), None)


def _is_on_keys(condition: Expression) -> bool:
    used = (one.field("of") or "" for one in condition.walk() if one.name == OUTPUT)
    return not any(" function " in one for one in used)


def moved_marks(old: PlanTree, new: PlanTree) -> bool:
    """As many watermarks as before, and elsewhere; more or fewer are another rule's."""
    before, after = _mark_places(old.root), _mark_places(new.root)
    return len(before) == len(after) and before != after and bool(new.stateful)


def _mark_places(one: Input, place: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    found = [place for _ in one.watermarks]
    for at, below in enumerate(one.step.inputs):
        found += _mark_places(below, (*place, at))
    return found
