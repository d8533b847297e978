"""Removes the branches of added or removed sources from a plan, to compare the rest. Pure.

A union gives the rows of all its branches in no order, so an added branch does not change the
meaning of the others. Branches are sorted by their sources, and everything that the plan numbers
(sources, unions, aggregations) is numbered again in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from floodmark.checkpoint.plan.tree import (
    COLUMN,
    OUTPUT,
    Expression,
    Input,
    PlanStep,
    PlanTree,
    in_order,
)

_UNION, _SOURCE, _STATIC = "Union", "Source", "Static"
_BRANCH = "columns of branch "
_UNNUMBERED = frozenset(
    {"Join", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", _SOURCE, _STATIC}
)
_MARK = "@"
_FAR = 1 << 30
Change = Callable[[Expression], Expression]


def without_branches(
    tree: PlanTree, gone: Collection[int], numbers: Mapping[int, int] | None = None
) -> PlanTree:
    """Return the plan without the branches that read only sources in `gone`.

    `numbers` maps each kept source to its number in the other plan. If the numbers in a plan cannot
    be understood, it stays as it is: the plans then differ, and a rule reports that.
    """
    marked = _Marking()
    root = marked.input(tree.root)
    known = marked.known
    columns = tuple(one.mapped(lambda e: _marked(e, known)) for one in tree.columns)
    if any(not marked.knows(one) for one in _expressions(root, columns)):
        return tree
    pruning = _Pruning(frozenset(gone), numbers or {})
    kept = pruning.input(root)
    if kept is None:
        return tree
    columns = tuple(pruning.substituted(one) for one in columns)
    order = _Numbering(pruning)
    order.visit(kept)
    final = order.renamed_input(kept)
    return replace(tree, root=final, columns=tuple(order.renamed(one) for one in columns))


def sources_of(step: PlanStep) -> set[int]:
    return {int(one.field("number") or 0) for one in step.walk() if one.kind == _SOURCE}


def _expressions(root: Input, columns: tuple[Expression, ...]) -> Iterator[Expression]:
    for one in columns:
        yield from one.walk()
    waiting = [root]
    while waiting:
        found = waiting.pop()
        waiting.extend(found.step.inputs)
        for each in (
            *found.conditions,
            *(mark.column for mark in found.watermarks),
            *(e for _, all_ in found.step.expressions for e in all_),
        ):
            yield from each.walk()


def _split(of: str) -> tuple[str, str, str]:
    kind, number, which = of.split(" ", 2)
    return kind, number, which


def _marked(one: Expression, known: Mapping[tuple[str, str], str]) -> Expression:
    """Return an output with the mark of its step instead of its number."""
    of = one.field("of")
    if one.name != OUTPUT or of is None:
        return one
    kind, number, which = _split(of)
    mark = known.get((kind, number))
    return one if mark is None else replace(one, fields=(("of", f"{kind} {mark} {which}"),))


@dataclass
class _Marking:
    """Finds the number of each step, as `checkpoint/plan/reading.py` gave it."""

    known: dict[tuple[str, str], str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _marks: int = 0

    def knows(self, one: Expression) -> bool:
        of = one.field("of")
        return one.name != OUTPUT or (of is not None and _split(of)[1].startswith(_MARK))

    def input(self, one: Input) -> Input:
        step = one.step
        mark = self._next(step.kind) if step.kind == _UNION else ""
        below = tuple(self.input(each) for each in step.inputs)
        if step.kind not in _UNNUMBERED and not mark:
            mark = self._next(step.kind)

        def change(expression: Expression) -> Expression:
            return expression.mapped(lambda found: _marked(found, self.known))

        fields = (*step.fields, (_MARK, mark)) if mark else step.fields
        made = replace(
            step,
            fields=fields,
            expressions=tuple((r, tuple(change(e) for e in all_)) for r, all_ in step.expressions),
            inputs=below,
        )
        return _with(one, made, change)

    def _next(self, kind: str) -> str:
        number = self._counts.get(kind, -1) + 1
        self._counts[kind] = number
        self._marks += 1
        mark = f"{_MARK}{self._marks}"
        self.known[kind, str(number)] = mark
        return mark


def _with(one: Input, step: PlanStep, change: Change) -> Input:
    return Input(
        step,
        in_order(tuple(change(each) for each in one.conditions)),
        tuple(replace(mark, column=change(mark.column)) for mark in one.watermarks),
    )


@dataclass
class _Pruning:
    gone: frozenset[int]
    numbers: Mapping[int, int]
    _instead: dict[str, Expression] = field(default_factory=dict)
    """An output of a removed union → the output of its only branch."""

    def place(self, number: int) -> int:
        """Return a source's place in the other plan; removed sources come last."""
        return _FAR + number if number in self.gone else self.numbers.get(number, number)

    def substituted(self, one: Expression) -> Expression:
        return one.mapped(lambda found: self._instead.get(found.field("of") or "", found))

    def input(self, one: Input) -> Input | None:
        """Return the input without removed branches; None if only removed sources feed it."""
        sources = sources_of(one.step)
        if sources and sources <= self.gone:
            return None
        below = [self.input(each) for each in one.step.inputs]
        if one.step.kind == _UNION:
            return self._union(one, below)
        kept = [new or old for new, old in zip(below, one.step.inputs, strict=True)]
        step = replace(
            one.step,
            expressions=tuple(
                (role, tuple(self.substituted(e) for e in all_))
                for role, all_ in one.step.expressions
            ),
            inputs=tuple(kept),
        )
        return _with(one, step, self.substituted)

    def _union(self, one: Input, below: list[Input | None]) -> Input:
        branches: list[tuple[Input, tuple[Expression, ...]]] = []
        for at, child in enumerate(below):
            if child is not None:
                columns = tuple(map(self.substituted, one.step.role(f"{_BRANCH}{at}")))
                branches += self._flat(child, columns)
        branches.sort(
            key=lambda branch: min(map(self.place, sources_of(branch[0].step)), default=0)
        )
        mark = one.step.field(_MARK)
        if len(branches) > 1:
            step = replace(
                one.step,
                expressions=tuple(
                    (f"{_BRANCH}{at}", columns) for at, (_, columns) in enumerate(branches)
                ),
                inputs=tuple(child for child, _ in branches),
            )
            return _with(one, step, self.substituted)
        [(child, columns)] = branches
        for at, column in enumerate(columns):
            self._instead[f"{_UNION} {mark} column {at}"] = column
        fed = _with(one, child.step, self.substituted)
        return Input(
            child.step,
            in_order((*child.conditions, *fed.conditions)),
            (*fed.watermarks, *child.watermarks),
        )

    def _flat(
        self, child: Input, columns: tuple[Expression, ...]
    ) -> Iterator[tuple[Input, tuple[Expression, ...]]]:
        """Flatten a union in a union, if no step changes its rows in between."""
        if child.step.kind != _UNION or child.conditions or child.watermarks:
            yield child, columns
            return
        mark = child.step.field(_MARK)
        for at, below in enumerate(child.step.inputs):
            theirs = {
                f"{_UNION} {mark} column {number}": column
                for number, column in enumerate(child.step.role(f"{_BRANCH}{at}"))
            }

            def change(one: Expression, theirs: Mapping[str, Expression] = theirs) -> Expression:
                return theirs.get(one.field("of") or "", one)

            yield below, tuple(one.mapped(change) for one in columns)


@dataclass
class _Numbering:
    """Numbers what is left of the plan, as `checkpoint/plan/reading.py` numbers it."""

    pruning: _Pruning
    _counts: dict[str, int] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _statics: dict[str, int] = field(default_factory=dict)

    def visit(self, one: Input) -> None:
        step, mark = one.step, one.step.field(_MARK)
        if step.kind == _STATIC:
            self._statics.setdefault(step.field("number") or "", len(self._statics))
        if step.kind == _UNION and mark:
            self._numbers[mark] = self._next(step.kind)
        for below in step.inputs:
            self.visit(below)
        if step.kind != _UNION and mark:
            self._numbers[mark] = self._next(step.kind)

    def _next(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, -1) + 1
        return self._counts[kind]

    def renamed(self, one: Expression) -> Expression:
        return one.mapped(self._named)

    def _named(self, one: Expression) -> Expression:
        of = one.field("of")
        if one.name == OUTPUT and of is not None:
            kind, mark, which = _split(of)
            number = self._numbers.get(mark)
            return (
                one
                if number is None
                else replace(one, fields=(("of", f"{kind} {number} {which}"),))
            )
        if one.name == COLUMN:
            return replace(one, fields=tuple(self._origin(*each) for each in one.fields))
        return one

    def _origin(self, key: str, value: str) -> tuple[str, str]:
        if key == "source" and value.isdecimal():
            return key, str(self.pruning.place(int(value)))
        if key == "static":
            return key, str(self._statics.get(value, value))
        return key, value

    def renamed_input(self, one: Input) -> Input:
        step = one.step
        fields = tuple((k, v) for k, v in step.fields if k != _MARK)
        if step.kind in (_SOURCE, _STATIC):
            number = step.field("number") or "0"
            now = (
                str(self.pruning.place(int(number)))
                if step.kind == _SOURCE
                else str(self._statics.get(number, number))
            )
            fields = tuple((k, now if k == "number" else v) for k, v in fields)
        made = PlanStep(
            step.kind,
            fields,
            tuple((role, tuple(map(self.renamed, all_))) for role, all_ in step.expressions),
            tuple(map(self.renamed_input, step.inputs)),
            step.stateful,
        )
        return _with(one, made, self.renamed)
