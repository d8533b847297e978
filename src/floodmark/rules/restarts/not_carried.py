"""Finds changes that a migration may not carry, because the state would get another meaning. Pure.

Columns that are matched one by one are not here: aggregates by their functions, fields by their
names. This module finds the changes of meaning that no column matching sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from floodmark.checkpoint.plan.meaning import meanings
from floodmark.checkpoint.plan.tree import KEY_ORDER, Expression, PlanStep, PlanTree
from floodmark.checkpoint.plan.words import words
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.differences import DifferenceKind, PlanDifference
from floodmark.rules.restarts.reason import Reason
from floodmark.rules.restarts.verdict import judge_restart

KEYS = "keys-mean-another"
_RULES = {
    DifferenceKind.FILTER: "filter-changed",
    DifferenceKind.ROWS: "rows-made-another-way",
    DifferenceKind.JOIN_TYPE: "join-type-changed",
    DifferenceKind.JOIN_CONDITION: "join-condition-changed",
}
# This module judges these by the plans, or column matching settles them.
_SETTLED = frozenset(
    {
        *_RULES.values(),
        KEYS,
        "aggregates-mean-another",
        "dedup-columns-changed",
        "join-columns-changed",
        "group-state-changed",
        "state-function-changed",
        "state-variables-changed",
        "timeout-kind-changed",
        "output-columns-changed",
        "partition-count-unpinned",
        "moved-state-schema",
        "sink-ahead",
        "sink-directory-changed",
        "sink-target-changed",
        "sink-changed",
    }
)


@dataclass(frozen=True)
class Unaccounted:
    rule: str
    """The name with which the user accepts it."""
    what: str
    where: str
    do: str | None = None
    """What else the user can say of it."""


def unaccounted(
    comparison: Comparison,
    renames: Mapping[str, str],
    given: bool,
    defaults: Iterable[str] = (),
) -> Iterator[Unaccounted]:
    """Yield the unaccepted changes.

    `renames` is new name → old name; `given`: a function of the user makes the rows; `defaults`
    are the new columns for which the user gives a value.
    """
    for reason in judge_restart(comparison).reasons:
        if reason.silent and not reason.verdict.is_yes and reason.rule not in _SETTLED:
            yield _of_reason(reason)
    last = comparison.last
    if last is None or last.tree is None:
        return
    for one in comparison.differences:
        if one.feeds is not None and one.kind in (
            DifferenceKind.FILTER,
            DifferenceKind.ROWS,
            DifferenceKind.JOIN_TYPE,
        ):
            yield _of_difference(one)
        elif one.kind is DifferenceKind.KEYS and one.where == "the plan's windows" and not given:
            yield Unaccounted(KEYS, one.what, one.where)
    new = comparison.new.tree
    new = new if last.tree.salt is None else new.hidden(last.tree.salt)
    old_names = {old: now for now, old in renames.items()}
    for before, after in _pairs(last.tree, new):
        if not given:
            yield from _keys(before, after, old_names)
        if after.kind == "Join":
            yield from _join(before, after, old_names)
            for side in ("left", "right"):
                yield from _other_column(side, before, after, old_names, defaults)


def _of_reason(reason: Reason) -> Unaccounted:
    return Unaccounted(reason.rule, f"{reason.what} ({reason.code})", reason.where)


def _of_difference(one: PlanDifference) -> Unaccounted:
    return Unaccounted(_RULES[one.kind], one.what, one.where)


def _pairs(old: PlanTree, new: PlanTree) -> Iterator[tuple[PlanStep, PlanStep]]:
    """Yield stateful steps of one kind in their order, as their state is matched."""
    left = list(old.stateful)
    for step in new.stateful:
        found = next((one for one in left if one.kind == step.kind), None)
        if found is not None:
            left.remove(found)
            yield found, step


def _keys(old: PlanStep, new: PlanStep, names: Mapping[str, str]) -> Iterator[Unaccounted]:
    """Yield keys with another meaning; a removed key is merged, and an added key is asked for."""
    before = {one: meanings(one, names) for one in _key_columns(old)}
    after = {one: meanings(one, {}) for one in _key_columns(new)}
    came = [one for one, mine in after.items() if not any(mine & it for it in before.values())]
    went = [one for one, mine in before.items() if not any(mine & it for it in after.values())]
    if came and went:
        what = (
            f"The key {', '.join(map(words, came))} takes the place of "
            f"{', '.join(map(words, went))}"
        )
        yield Unaccounted(KEYS, f"{what}.", "the plan's keys")


def _key_columns(step: PlanStep) -> tuple[Expression, ...]:
    for role in ("keys", "groupingAttributes", "groupingExpressions"):
        if step.role(role):
            return step.role(role)
    return ()


def _join(old: PlanStep, new: PlanStep, names: Mapping[str, str]) -> Iterator[Unaccounted]:
    wanted = {one for part in new.role("condition") for one in meanings(part, {})}
    kept = [meanings(part, names) for part in old.role("condition")]
    if len(kept) != len(new.role("condition")) or not all(one & wanted for one in kept):
        now = ", ".join(words(one) for one in new.role("condition"))
        was = ", ".join(words(one) for one in old.role("condition"))
        yield Unaccounted(
            _RULES[DifferenceKind.JOIN_CONDITION],
            f"The join's condition is {now}; it was {was}.",
            "the plan's join",
        )
    elif set(old.role(KEY_ORDER)) == set(new.role(KEY_ORDER)) and old.role(KEY_ORDER) != new.role(
        KEY_ORDER
    ):
        yield Unaccounted(
            _RULES[DifferenceKind.JOIN_CONDITION],
            "The keys of the join's state stand in another order.",
            "the plan's join",
        )
    for side in ("left", "right"):
        before = {names.get(one.label, one.label): one for one in old.role(f"{side} columns")}
        for column in new.role(f"{side} columns"):
            other = before.get(column.label)
            if other is not None and not meanings(other, names) & meanings(column, {}):
                yield Unaccounted(
                    _RULES[DifferenceKind.ROWS],
                    f"{column.label} of the {side} side is {words(column)}; it was {words(other)}.",
                    "the plan's join",
                )


def _other_column(
    side: str, old: PlanStep, new: PlanStep, names: Mapping[str, str], defaults: Iterable[str]
) -> Iterator[Unaccounted]:
    """Yield a column that takes the place of the only one that is gone.

    Matching by names would call it renamed, and it is made of something else.
    """
    before, after = old.role(f"{side} columns"), new.role(f"{side} columns")
    kept = [names.get(one.label, one.label) for one in before]
    came = [one for one in after if one.label not in kept]
    labels = [one.label for one in after]
    went = [one for one, name in zip(before, kept, strict=True) if name not in labels]
    if not len(came) == len(went) == 1 or came[0].label in defaults:
        return
    if meanings(went[0], names) & meanings(came[0], {}):
        return
    now, was = came[0].label, went[0].label
    yield Unaccounted(
        _RULES[DifferenceKind.ROWS],
        f"{now} of the {side} side is {words(came[0])}, and {was}, which was {words(went[0])}, is "
        "gone",
        "the plan's join",
        f"If {now} is null in rows that wait: --default {now}=null. If it is the same as {was}: "
        f"--rename {was}={now}.",
    )
