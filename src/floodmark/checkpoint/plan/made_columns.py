"""Says what a column of a plan stands for: the step that makes it, or its expression. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from floodmark.checkpoint.plan.tree import (
    OUTPUT,
    Expression,
    Input,
)
from floodmark.checkpoint.plan.words import words


def nameless(number: int) -> Expression:
    return Expression(OUTPUT, (("number", str(number)),), label=f"column {number}")


@dataclass
class Fed:
    """What a step gets from the step below it, with the meaning of each column's number."""

    input: Input
    environment: dict[int, Expression]
    streaming: bool


def output_of(kind: str, number: int, which: str, made_of: object) -> Expression:
    """Return a column that a step below outputs, by its place.

    A change below shows there, so it must not show here a second time.
    """
    # Notes keep the label, and a text literal of the code may be a key.
    label = words(made_of, texts=False) if isinstance(made_of, Expression) else made_of or which
    return Expression(OUTPUT, (("of", f"{kind} {number} {which}"),), label=str(label))


def replaced(one: Expression, change: Any) -> Expression:
    """Replace expressions from the top; unlike `mapped`, do not look into a replaced one."""
    changed: Expression = change(one)
    if changed is not one:
        return changed
    children = tuple(replaced(child, change) for child in one.children)
    return replace(one, children=children) if children else one
