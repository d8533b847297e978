"""Words for the differences of two plans: expressions, options, types and functions. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from floodmark.checkpoint.plan.tree import (
    COLUMN,
    KEY_ORDER,
    SOURCE_CODE,
    UNMARKED,
    Expression,
    PlanStep,
)
from floodmark.checkpoint.plan.words import words
from floodmark.rules.restarts.windows import shown

GROUPING = ("groupingAttributes", "groupingExpressions", "groupingAttributesLen")
NOT_COMPARED = "not compared: "
"""The mark in the digest of a function that uses something that cannot be found."""
_DIGESTS = {
    ("Static", "rows"): "Its rows, which the code gives, are others than before.",
    ("Static", "format"): "Its format, options, columns or version are not as before.",
    ("Source", SOURCE_CODE): "The code of this Python data source does something else than at the "
    "last start, or uses other values.",
}
"""Sentences for the fields whose values are digests."""
_WORDS = {
    "Aggregate": "the aggregation",
    "Deduplicate": "the deduplication",
    "DeduplicateWithinWatermark": "the deduplication",
    "Distinct": "the deduplication",
    "Join": "the join",
    "GlobalLimit": "the limit",
}


def state_words(kind: str) -> str:
    return _WORDS.get(kind, kind)


def role_words(role: str, step: PlanStep) -> str:
    known = {
        "keys": "The keys are",
        "functions": "The aggregates are",
        "condition": "The join's condition is",
        KEY_ORDER: "The keys of the join's state stand in another order:",
        "limitExpr": "The limit is",
        "columns": "The columns that the function is given are",
    }
    if role in GROUPING:
        return "The keys are"
    return known.get(role, f"The {role} of {state_words(step.kind)} are")


def changed_words(before: tuple[Expression, ...], after: tuple[Expression, ...]) -> str:
    now, was = listed(after), listed(before)
    if now != was:
        return f"{now}; they were {was}." if len(after) != 1 else f"{now}; it was {was}."
    detail = next(
        (found for pair in zip(before, after, strict=False) if (found := _detail(*pair))), ""
    )
    return f"{now}, made in another way than before{detail}."


def _detail(old: Expression, new: Expression) -> str:
    """Return what differs if both read alike: an option, a type, the body of a function."""
    if old == new:
        return ""
    if old.name == new.name == COLUMN:
        return f": {new.label} is {_origin(new)}, and was {_origin(old)}"
    if old.name == new.name and len(old.children) == len(new.children):
        for before, after in zip(old.children, new.children, strict=True):
            found = _detail(before, after)
            if found:
                return found
        for (name, was), (_, now) in zip(old.fields, new.fields, strict=False):
            if was != now:
                return _field_words(name, was, now)
    return ""


def _origin(column: Expression) -> str:
    for name in ("source", "static"):
        number = column.field(name)
        if number is not None:
            kind = f"a {column.field('type')} of " if column.field("type") else "of "
            return f"{kind}{'source' if name == 'source' else 'static table'} {number}"
    return column.label


def _field_words(name: str, was: str, now: str) -> str:
    if name == "function" and NOT_COMPARED in was + now:
        why = (now if NOT_COMPARED in now else was).partition(NOT_COMPARED)[2]
        return f": a Python function cannot be compared, as {why.partition(' (')[0]}"
    if name == "function":
        same_python = was.partition(":")[0] == now.partition(":")[0]
        return (
            ": the body of a Python function has changed, or a value that it uses"
            if same_python
            else ": a Python function cannot be compared with that of another Python"
        )
    if now.startswith('"text:'):
        return f": another text, or another of its {name}"
    return f": {name} is {now.strip(chr(34))}, and was {was.strip(chr(34))}"


def without_body(found: tuple[Expression, ...]) -> tuple[Expression, ...]:
    def bare(one: Expression) -> Expression:
        if not one.name.startswith("Python"):
            return one
        kept = tuple(
            (name, value) for name, value in one.fields if name not in ("function", "name")
        )
        return Expression(one.name, kept, one.children)

    return tuple(one.mapped(bare) for one in found)


def body_words(before: tuple[Expression, ...], after: tuple[Expression, ...]) -> str:
    names = [one.label or json.loads(one.field("name") or '"?"') for one in after]
    detail = next((f for pair in zip(before, after, strict=False) if (f := _detail(*pair))), "")
    if "another Python" in detail:
        return f"{', '.join(names)}() cannot be compared: another Python wrote it."
    if "cannot be compared, as" in detail:
        return f"{', '.join(names)}(){detail}."
    return f"{', '.join(names)}(), which keeps the state, does something else than before."


def digest_sentence(kind: str, name: str) -> str | None:
    return _DIGESTS.get((kind, name))


def field_sentence(name: str, was: str | None, now: str | None) -> str:
    if name == UNMARKED:
        return _unmarked_words(now)
    texts = [("nothing" if one is None else one.strip('"')) for one in (now, was)]
    return f"The {name} is {texts[0]}, and was {texts[1]}."


def _unmarked_words(now: str | None) -> str:
    copies = "copies of the watermark's column that were made before withWatermark"
    if now is None:
        return f"Its times carry the watermark now; they were {copies}, and did not carry it."
    return (
        f"Its times are {copies}, and do not carry the watermark: Spark drops no late rows there, "
        "and removes no state."
    )


def role_title(role: str) -> str:
    return f"{role[:1].upper()}{role[1:]}:"


def named_step(step: PlanStep) -> str:
    if step.kind in ("Source", "Static"):
        return "a source" if step.kind == "Source" else "a static table"
    return f"{'an' if step.kind[0] in 'AEIOU' else 'a'} {step.kind}"


def listed(found: Iterable[Expression]) -> str:
    return ", ".join(words(shown(one)) for one in found) or "none"
