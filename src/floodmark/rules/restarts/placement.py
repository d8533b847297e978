"""Finds where a filter or a watermark acts, which can differ from its place in the code. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from floodmark.checkpoint.plan.tree import OUTPUT, Expression, Input, PlanStep, PlanTree


def moved_below(step: PlanStep, conditions: Iterable[Expression]) -> str | None:
    """Return the kind of the state that Spark filters first: it pushes filters down.

    Spark pushes a filter through a join of streams, and through an aggregation if it uses only the
    keys.
    """
    if step.stateful and step.kind in ("Aggregate", "Distinct"):
        return step.kind if step.role("keys") and any(map(_is_on_keys, conditions)) else None
    if step.stateful:
        return step.kind if step.kind == "Join" else None
    below = (moved_below(one.step, conditions) for one in step.inputs)
    return next((one for one in below if one is not None), None)


def acts_below(step: PlanStep) -> str | None:
    """Return the state that a step without state reaches: Spark turns its condition into filters.

    After `totals.join(names, "k")` Spark may count only keys that are in `names`.
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
    """Whether watermarks have moved; other rules report added or removed ones."""
    before, after = _mark_places(old.root), _mark_places(new.root)
    return len(before) == len(after) and before != after and bool(new.stateful)


def _mark_places(one: Input, place: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    found = [place for _ in one.watermarks]
    for at, below in enumerate(one.step.inputs):
        found += _mark_places(below, (*place, at))
    return found
