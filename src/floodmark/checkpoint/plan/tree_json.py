"""A plan's tree to JSON and back, for notes of starts and outlines. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from floodmark.checkpoint.plan.tree import (
    ABOVE,
    NAMED,
    Expression,
    Fields,
    Input,
    PlanStep,
    PlanTree,
    Watermark,
)

_READ_AS_JSON = ("name", "value", "type", "dataType")
_OF_ANOTHER = (NAMED, ABOVE, "Cast", "GetStructField")
"""Expressions that have no meaning without a child."""


def tree_to_json(tree: PlanTree) -> dict[str, object]:
    """Return the tree as JSON; each expression stands once in a list, and its place refers to
    it.
    """
    table: dict[Expression, int] = {}
    rows: list[list[object]] = []

    def place(one: Expression) -> int:
        if one not in table:
            children = [place(child) for child in one.children]
            rows.append([one.name, dict(one.fields), children, one.label])
            table[one] = len(rows) - 1
        return table[one]

    def fed(one: Input) -> dict[str, object]:
        return {
            "step": {
                "kind": one.step.kind,
                "fields": dict(one.step.fields),
                "expressions": [
                    [role, [place(e) for e in found]] for role, found in one.step.expressions
                ],
                "inputs": [fed(below) for below in one.step.inputs],
                "stateful": one.step.stateful,
            },
            "conditions": [place(e) for e in one.conditions],
            "watermarks": [[place(w.column), w.name, w.delay_ms] for w in one.watermarks],
        }

    root = fed(tree.root)
    columns = [place(one) for one in tree.columns]
    return {
        "root": root,
        "columns": columns,
        "expressions": rows,
        "canonical": tree.canonical,
        "tries": list(tree.tries),
        "unseen": list(tree.unseen),
        "untold": list(tree.untold),
        "salt": tree.salt,
    }


def tree_from_json(value: object) -> PlanTree | None:
    """Return the tree, or None if the JSON is not one: anybody may have written a note."""
    try:
        return _tree_from_json(value)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _tree_from_json(value: object) -> PlanTree:
    if not isinstance(value, dict):
        raise TypeError
    table: list[Expression] = []
    for name, fields, children, label in value["expressions"]:
        below = tuple(table[_index(at)] for at in children)
        table.append(_sound(Expression(str(name), _texts(fields), below, str(label))))

    def at(number: object) -> Expression:
        return table[_index(number)]

    def fed(found: Mapping[str, object]) -> Input:
        step = found["step"]
        if not isinstance(step, dict):
            raise TypeError
        return Input(
            PlanStep(
                str(step["kind"]),
                _texts(step["fields"]),
                tuple((str(role), tuple(map(at, all_))) for role, all_ in step["expressions"]),
                tuple(fed(below) for below in step["inputs"]),
                step["stateful"] is True,
            ),
            tuple(map(at, found["conditions"])),  # type: ignore[call-overload]
            tuple(
                Watermark(at(column), str(name), delay if isinstance(delay, int) else None)
                for column, name, delay in found["watermarks"]  # type: ignore[attr-defined]
            ),
        )

    salt = value.get("salt")
    return PlanTree(
        fed(value["root"]),
        tuple(at(one) for one in value["columns"]),
        str(value.get("canonical", "")),
        tuple(str(one) for one in value.get("tries", ())),
        tuple(str(one) for one in value.get("unseen", ())),
        tuple(str(one) for one in value.get("untold", ())),
        salt if isinstance(salt, str) else None,
    )


def _sound(one: Expression) -> Expression:
    """Return the expression if it has what its readers rely on; raise otherwise."""
    for name, value in one.fields:
        if name in _READ_AS_JSON:
            json.loads(value)
    if not one.children and one.name in _OF_ANOTHER:
        raise ValueError
    return one


def _index(number: object) -> int:
    if not isinstance(number, int) or number < 0:
        raise ValueError
    return number


def _texts(fields: object) -> Fields:
    if not isinstance(fields, dict):
        raise TypeError
    return tuple((str(key), str(value)) for key, value in fields.items())
