"""Where two plans differ, and which state each difference feeds. Pure.

The trees are walked together from the sink. Everything that is not equal is a difference
of some kind; each kind is for one rule to judge, and what no other rule knows is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.plan.tree import (
    COLUMN,
    KEY_ORDER,
    Expression,
    Fields,
    Input,
    PlanStep,
    PlanTree,
    words,
)
from floodmark.rules.restarts.placement import acts_below, moved_below, moved_marks
from floodmark.rules.restarts.windows import has_windows, shown, without_windows


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
    """The rows that reach a state are made in another way."""
    OUTPUT = "output"
    """What is made of the results; it reaches no state."""


@dataclass(frozen=True)
class PlanDifference:
    kind: DifferenceKind
    what: str
    """A sentence: what it is, and what it was."""
    where: str
    feeds: str | None = None
    """The stateful step that it reaches, by Spark's class; None: no state depends on it."""
    columns: tuple[str, ...] = ()


NOT_COMPARED = "not compared: "
"""In the digest of a function that uses what cannot be found."""
_STATE_COLUMNS = {"keys": DifferenceKind.KEYS, "functions": DifferenceKind.FUNCTIONS}
_OTHER_WINDOWS = "The windows have another length, slide or start."
_GROUPING = ("groupingAttributes", "groupingExpressions", "groupingAttributesLen")
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


def differences(old: PlanTree, new: PlanTree) -> tuple[PlanDifference, ...]:
    """Nothing where the plans do the same; the order is that of the steps, from the sink."""
    if old.salt is not None:
        new = new.hidden(old.salt)
    found = list(_inputs(old.root, new.root, None))
    if old.tries != new.tries:
        found.append(_tries(old, new))
    if not found and old.columns != new.columns:
        found.append(_output(old.columns, new.columns))
    fed = any(one.feeds is not None for one in found)
    if not fed and moved_marks(old, new):
        what = "A watermark stands before other steps than it did."
        found.append(
            PlanDifference(DifferenceKind.ROWS, what, "the plan's watermark", _first_state(new))
        )
    if not fed and old.canonical != new.canonical and (old.unseen or new.unseen):
        found.append(_unseen(old, new))
    return tuple(found)


def untold(old: PlanTree, new: PlanTree) -> PlanDifference | None:
    """What may be another in code that has changed, and cannot be seen."""
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
        f"Spark tells the plans apart, and does not say by what: {parts} cannot be read.",
        "the plan",
        fed,
    )


def _first_state(tree: PlanTree) -> str | None:
    return next((step.kind for step in tree.stateful), None)


def _output(old: tuple[Expression, ...], new: tuple[Expression, ...]) -> PlanDifference:
    changed = [one for one in new if one not in old]
    made = f": {_list(changed)}" if changed else ""
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
    """A state that begins now has nothing of the old filters in it."""
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
        f"Where {state_words(old.kind)} kept state there is {_named(new)} now.",
        "the plan's operators",
        new.kind if new.stateful else old.kind,
    )


def _other_step(old: PlanStep, new: PlanStep, feeds: str | None) -> PlanDifference:
    what = f"Where {_named(old)} made the rows there is {_named(new)} now."
    if feeds is not None:
        return PlanDifference(
            DifferenceKind.ROWS, what, f"the plan, below {state_words(feeds)}", feeds
        )
    return PlanDifference(DifferenceKind.OUTPUT, what, "the plan's output")


def _below(old: PlanStep, new: PlanStep) -> Iterator[PlanDifference]:
    """Steps that keep state are the same ones by their order: so does Spark number them."""
    before, after = list(_nearest_state(old)), list(_nearest_state(new))
    if [one.step.kind for one in before] != [one.step.kind for one in after]:
        yield PlanDifference(
            DifferenceKind.OPERATORS,
            f"State is kept by {_kinds(after)}; it was by {_kinds(before)}.",
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


def _named(step: PlanStep) -> str:
    if step.kind in ("Source", "Static"):
        return "a source" if step.kind == "Source" else "a static table"
    return f"{'an' if step.kind[0] in 'AEIOU' else 'a'} {step.kind}"


def _stateful(old: PlanStep, new: PlanStep) -> Iterator[PlanDifference]:
    where = f"the plan, {state_words(new.kind)}"
    yield from _fields(old, new, where)
    for role in dict.fromkeys(role for role, _ in (*old.expressions, *new.expressions)):
        before, after = old.role(role), new.role(role)
        if role == KEY_ORDER and set(before) != set(after):
            continue  # the condition tells of that
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
    if kind is DifferenceKind.CODE and _without_body(before) == _without_body(after):
        yield PlanDifference(kind, _body_words(before, after), where, step.kind)
        return
    if kind is DifferenceKind.CODE:
        kind = DifferenceKind.ROWS
    what = f"{_role_words(role, step)} {_changed(before, after)}"
    if kind is DifferenceKind.KEYS and without_windows(before) == without_windows(after):
        what = _OTHER_WINDOWS
    yield PlanDifference(kind, what, where, step.kind, tuple(words(one) for one in after))


def _kind_of_role(role: str, step: PlanStep) -> DifferenceKind:
    if role in _STATE_COLUMNS:
        return _STATE_COLUMNS[role]
    if role in _GROUPING:
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


def _role_words(role: str, step: PlanStep) -> str:
    known = {
        "keys": "The keys are",
        "functions": "The aggregates are",
        "condition": "The join's condition is",
        KEY_ORDER: "The keys of the join's state stand in another order:",
        "limitExpr": "The limit is",
        "columns": "The columns that the function is given are",
    }
    if role in _GROUPING:
        return "The keys are"
    return known.get(role, f"The {role} of {state_words(step.kind)} are")


def _changed(before: tuple[Expression, ...], after: tuple[Expression, ...]) -> str:
    now, was = _list(after), _list(before)
    if now != was:
        return f"{now}; they were {was}." if len(after) != 1 else f"{now}; it was {was}."
    detail = next(
        (found for pair in zip(before, after, strict=False) if (found := _detail(*pair))), ""
    )
    return f"{now}, made in another way than before{detail}."


def _detail(old: Expression, new: Expression) -> str:
    """What differs where both read alike: an option, a type, the body of a function."""
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


def _without_body(found: tuple[Expression, ...]) -> tuple[Expression, ...]:
    def bare(one: Expression) -> Expression:
        if not one.name.startswith("Python"):
            return one
        kept = tuple(
            (name, value) for name, value in one.fields if name not in ("function", "name")
        )
        return Expression(one.name, kept, one.children)

    return tuple(one.mapped(bare) for one in found)


def _body_words(before: tuple[Expression, ...], after: tuple[Expression, ...]) -> str:
    names = [one.label or json.loads(one.field("name") or '"?"') for one in after]
    detail = next((f for pair in zip(before, after, strict=False) if (f := _detail(*pair))), "")
    if "another Python" in detail:
        return f"{', '.join(names)}() cannot be compared: it was written by another Python."
    if "cannot be compared, as" in detail:
        return f"{', '.join(names)}(){detail}."
    return f"{', '.join(names)}(), which keeps the state, does something else than before."


def _fields(old: PlanStep, new: PlanStep, where: str) -> Iterator[PlanDifference]:
    for name, was, now in _field_changes(old.fields, new.fields):
        kind = {"type": DifferenceKind.JOIN_TYPE, "timeout": DifferenceKind.TIMEOUT}.get(
            name, DifferenceKind.ROWS
        )
        if name in ("stateType", "outputMode", "timeMode"):
            continue  # rules of their own compare what the checkpoint has of these
        yield PlanDifference(kind, _field_sentence(name, was, now), where, new.kind)


def _field_sentence(name: str, was: str | None, now: str | None) -> str:
    texts = [("nothing" if one is None else one.strip('"')) for one in (now, was)]
    return f"The {name} is {texts[0]}, and was {texts[1]}."


def _field_changes(old: Fields, new: Fields) -> Iterator[tuple[str, str | None, str | None]]:
    before, after = dict(old), dict(new)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _plain_step(old: PlanStep, new: PlanStep, feeds: str | None) -> Iterator[PlanDifference]:
    said = [
        *(_field_sentence(*change) for change in _field_changes(old.fields, new.fields)),
        *(
            f"{_role_title(role)} {_changed(old.role(role), new.role(role))}"
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
        kind, f"{_named(new).capitalize()} has changed. {' '.join(said)}", below, feeds
    )


def _role_title(role: str) -> str:
    return f"{role[:1].upper()}{role[1:]}:"


def _list(found: Iterable[Expression]) -> str:
    return ", ".join(words(shown(one)) for one in found) or "none"
