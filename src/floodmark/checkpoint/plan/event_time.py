"""Reads what a plan says of event time: columns with a watermark, and conditions above it. Pure."""

from __future__ import annotations

from floodmark.checkpoint.plan.made_columns import Fed
from floodmark.checkpoint.plan.tree import (
    ABOVE,
    OUTPUT,
    UNMARKED,
    Expression,
    Fields,
    watermarks_of,
)


def _is_time(one: Expression, marks: set[Expression], fed: Fed) -> bool:
    """Whether an expression is a watermark's column, or a window of one."""
    if one in marks:
        return True
    step = fed.input.step
    if one.name == OUTPUT and step.kind == "Expand":  # sliding windows
        made = (part for _, found in step.expressions for each in found for part in each.walk())
        return any(part in marks for part in made)
    return one.name == "CreateNamedStruct" and any(part in marks for part in one.walk())


def placed(condition: Expression, marked: list[Expression]) -> Expression:
    """Mark a condition on event time, which Spark leaves where it stands in the plan.

    Rows with a far future time move the watermark if the condition stands above it, and do not if
    it stands below.
    """
    above = any(one in marked for one in condition.walk())
    return Expression(ABOVE, (), (condition,)) if above else condition


def unmarked(columns: list[int], fed: Fed, marked: frozenset[int]) -> Fields:
    """Say it of a copy of the watermark's column that was made before withWatermark.

    It has the same values, and to Spark no event time. `marked`: the columns with a watermark.
    """
    marks = {mark.column for mark in watermarks_of(fed.input)}
    if not (marks and fed.streaming) or any(one in marked for one in columns):
        return ()
    made = [fed.environment[one] for one in columns if one in fed.environment]
    return ((UNMARKED, "true"),) if any(_is_time(one, marks, fed) for one in made) else ()
