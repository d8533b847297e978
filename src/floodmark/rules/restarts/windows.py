"""Finds the time windows of a plan, and their length. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from floodmark.checkpoint.plan.tree import LITERAL, OUTPUT, Expression, PlanStep, PlanTree


def window_length(tree: PlanTree) -> int | None:
    """Return the length of the plan's time windows in microseconds; None if none or several."""
    found = {
        length
        for step in tree.steps()
        for _, expressions in step.expressions
        for expression in expressions
        for one in expression.walk()
        if (length := _length(one)) is not None
    }
    return found.pop() if len(found) == 1 else None


def has_windows(step: PlanStep) -> bool:
    """Whether a step makes sliding windows: Spark repeats each row for each of its windows."""
    return step.kind == "Expand" and any(
        _length(one) is not None for _, found in step.expressions for one in found
    )


def shown(one: Expression) -> Expression:
    """Return the expression with each window as one word, for people."""

    def short(found: Expression) -> Expression:
        length = _length(found)
        if length is None:
            return found
        return Expression(OUTPUT, (("window", str(length)),), label=f"window of {length / 1e6:g} s")

    return one.mapped(short)


def without_windows(found: Iterable[Expression]) -> list[Expression]:
    return [one for one in found if _length(one) is None]


def _length(struct: Expression) -> int | None:
    """Return the length of a window: named_struct('start', s, 'end', e) with e = s + length."""
    if struct.name != "CreateNamedStruct" or len(struct.children) != 4:
        return None
    start, end = _bare(struct.children[1]), _bare(struct.children[3])
    if end.name != "Add" or len(end.children) != 2 or start not in end.children:
        return None
    other = next((one for one in end.children if one != start), None)
    if other is None or other.name != LITERAL:
        return None
    value = json.loads(other.field("value") or "null")
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _bare(one: Expression) -> Expression:
    while one.name in ("KnownNullable", "PreciseTimestampConversion") and one.children:
        one = one.children[0]
    return one
