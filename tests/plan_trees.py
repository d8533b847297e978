"""Plans for tests, from a few words: `plan(functions=("sum(amount)",))` is an aggregation."""

from __future__ import annotations

import json

from floodmark.checkpoint.plan.tree import (
    COLUMN,
    LITERAL,
    OUTPUT,
    Expression,
    Input,
    PlanStep,
    PlanTree,
    Watermark,
    in_order,
)

SOURCE = PlanStep("Source", (("number", "0"),))


def expression(text: str) -> Expression:
    """`sum(amount)`, `amount`, `1`, `greater_than(amount, 1)`; `@key 0`: a result's column."""
    if text.startswith("@"):
        return Expression(OUTPUT, (("of", f"Aggregate 0 {text[1:]}"),), label=text)
    name, opening, rest = text.partition("(")
    if opening:
        inner = _arguments(rest.rstrip()[:-1])
        kind = "".join(part.capitalize() for part in name.split("_"))
        return Expression(kind, (), tuple(expression(one) for one in inner))
    if text.isdecimal():
        return Expression(LITERAL, (("dataType", '"integer"'), ("value", json.dumps(text))))
    if text.startswith("'"):
        value = json.dumps(text.strip("'"))
        return Expression(LITERAL, (("dataType", '"string"'), ("value", value)))
    return Expression(COLUMN, (("name", json.dumps(text)), ("source", "0")), label=text)


def _arguments(text: str) -> list[str]:
    found, depth, word = [], 0, ""
    for sign in text:
        if sign == "," and depth == 0:
            found.append(word.strip())
            word = ""
            continue
        depth += (sign == "(") - (sign == ")")
        word += sign
    return [*found, word.strip()] if word.strip() else found


def expressions(*texts: str) -> tuple[Expression, ...]:
    return tuple(expression(one) for one in texts)


def plan(
    functions: tuple[str, ...] = ("sum(amount)", "count(1)"),
    keys: tuple[str, ...] = ("user",),
    *,
    where: tuple[str, ...] = (),
    having: tuple[str, ...] = (),
    columns: tuple[str, ...] = (),
    watermark: tuple[str, int] | None = None,
) -> PlanTree:
    marks = ()
    if watermark is not None:
        marks = (Watermark(expression(watermark[0]), watermark[0], watermark[1]),)
    below = Input(SOURCE, in_order(expressions(*where)), marks)
    step = PlanStep(
        "Aggregate",
        (),
        (("keys", expressions(*keys)), ("functions", expressions(*functions))),
        (below,),
        stateful=True,
    )
    return PlanTree(Input(step, in_order(expressions(*having))), expressions(*columns))


def of_step(
    kind: str,
    *,
    fields: dict[str, str] | None = None,
    stateful: bool = True,
    **roles: tuple[str, ...],
) -> PlanTree:
    """A plan of one step over a source."""
    told = tuple((key, json.dumps(value)) for key, value in (fields or {}).items())
    found = tuple((role.replace("_", " "), expressions(*texts)) for role, texts in roles.items())
    return PlanTree(Input(PlanStep(kind, told, found, (Input(SOURCE),), stateful)), ())
