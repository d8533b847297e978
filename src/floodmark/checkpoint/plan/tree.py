"""A query's plan as a tree that can be compared: what each step keeps, and its inputs.

Projections are put into the expressions that use them, so that a column is its definition and not
its name. The tree leaves out column names that Spark numbers anew in every session, and columns
that nobody uses. `checkpoint/plan/reading.py` makes the tree from Spark's JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

Fields = tuple[tuple[str, str], ...]
COLUMN, OUTPUT = "column", "output"
"""Names of expressions that are no functions: a source's column, and a lower step's output."""
LITERAL = "Literal"
NAMED = "named"
"""A column of the rows in a state; its label is its name in the state."""
ABOVE = "above"
"""A condition on event time whose rejected rows still move the watermark."""
KEY_ORDER = "key order"
"""The equalities of a join of streams, in the order of the keys in its state."""
SOURCE_CODE = "code"
"""A field of a source that is written in Python: a digest of what it does."""
UNMARKED = "unmarked"
"""A field of a step whose columns of event time are copies without the watermark."""
TEXTS = ('"string"', '"binary"')
SQL_VARIABLE = "VariableReference"
"""A variable of DECLARE VARIABLE; its one child is its value."""
HIDDEN = "text:"


@dataclass(frozen=True, eq=False)
class Expression:
    """One expression of a plan. Two are equal if their names, fields and children are."""

    name: str
    """The name of Spark's class: Sum, Cast, EqualTo…"""
    fields: Fields = ()
    """Arguments that are no expressions, as JSON texts: types, options, names."""
    children: tuple[Expression, ...] = ()
    label: str = ""
    """The name to show. Expressions that differ only in it are equal."""
    digest: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Computed from the children's digests: a column that is used often is read once.
        found = hashlib.blake2b(digest_size=16)
        found.update(json.dumps([self.name, self.fields]).encode())
        for child in self.children:
            found.update(child.digest)
        object.__setattr__(self, "digest", found.digest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def field(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key == name), None)

    def walk(self) -> Iterator[Expression]:
        """Yield this and all below it, each once."""
        seen: set[Expression] = set()
        waiting = [self]
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                yield one
                waiting.extend(reversed(one.children))

    def mapped(self, change: Callable[[Expression], Expression]) -> Expression:
        return _mapped(self, change, {})


def _mapped(
    one: Expression, change: Callable[[Expression], Expression], done: dict[Expression, Expression]
) -> Expression:
    if one not in done:
        children = tuple(_mapped(child, change, done) for child in one.children)
        same = all(new is old for new, old in zip(children, one.children, strict=True))
        done[one] = change(one if same else replace(one, children=children))
    return done[one]


@dataclass(frozen=True)
class Watermark:
    column: Expression
    name: str
    delay_ms: int | None


@dataclass(frozen=True)
class Input:
    """The input of a step: the rows of another step that pass the conditions."""

    step: PlanStep
    conditions: tuple[Expression, ...] = ()
    watermarks: tuple[Watermark, ...] = ()


@dataclass(frozen=True)
class PlanStep:
    kind: str
    """The name of Spark's class: Aggregate, Join, Deduplicate, Union, Generate, Source…"""
    fields: Fields = ()
    expressions: tuple[tuple[str, tuple[Expression, ...]], ...] = ()
    """(role, expressions): `keys`, `functions`, `condition`, `columns`, `left columns`…"""
    inputs: tuple[Input, ...] = ()
    stateful: bool = False

    def role(self, name: str) -> tuple[Expression, ...]:
        return next((found for role, found in self.expressions if role == name), ())

    def field(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key == name), None)

    def walk(self) -> Iterator[PlanStep]:
        """Yield the steps nearest the sink first, as Spark numbers stateful operators."""
        yield self
        for one in self.inputs:
            yield from one.step.walk()


@dataclass(frozen=True)
class PlanTree:
    root: Input
    columns: tuple[Expression, ...]
    """The columns that the sink receives, in order."""
    canonical: str = ""
    """A digest of Spark's own canonical form. Equal plans have equal digests."""
    tries: tuple[str, ...] = ()
    """Functions that return null instead of failing, such as try_sum: the JSON names them sum."""
    unseen: tuple[str, ...] = ()
    """Fields of this plan that Spark's JSON leaves out, as Class.field."""
    untold: tuple[str, ...] = ()
    """What neither the JSON nor Spark's objects show, such as what a Java function does."""
    salt: str | None = None
    """The salt of the hashes that stand for texts; None if texts are not hidden."""

    def steps(self, *kinds: str) -> tuple[PlanStep, ...]:
        return tuple(one for one in self.root.step.walk() if not kinds or one.kind in kinds)

    @property
    def stateful(self) -> tuple[PlanStep, ...]:
        return tuple(one for one in self.steps() if one.stateful)

    @property
    def watermarks(self) -> tuple[Watermark, ...]:
        return tuple(watermarks_of(self.root))

    def mapped(self, change: Callable[[Expression], Expression]) -> PlanTree:
        done: dict[Expression, Expression] = {}
        return replace(
            self,
            root=_mapped_input(self.root, lambda one: _mapped(one, change, done)),
            columns=tuple(_mapped(one, change, done) for one in self.columns),
        )

    def hidden(self, salt: str) -> PlanTree:
        """Return the tree without texts.

        A literal may be a key or a password, and other people can read a note.
        """
        if self.salt is not None:
            return self
        return replace(self.mapped(lambda one: _without_text(one, salt)), salt=salt)


def watermarks_of(one: Input) -> Iterator[Watermark]:
    yield from one.watermarks
    for below in one.step.inputs:
        yield from watermarks_of(below)


def _mapped_input(one: Input, change: Callable[[Expression], Expression]) -> Input:
    step = replace(
        one.step,
        expressions=tuple(
            (r, tuple(change(e) for e in found)) for r, found in one.step.expressions
        ),
        inputs=tuple(_mapped_input(below, change) for below in one.step.inputs),
    )
    return Input(
        step,
        in_order(change(condition) for condition in one.conditions),
        tuple(replace(mark, column=change(mark.column)) for mark in one.watermarks),
    )


def in_order(expressions: Iterator[Expression] | tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return each expression once, in an order that does not depend on how the code is written."""
    return tuple(sorted(set(expressions), key=lambda one: one.digest))


def hidden_expression(one: Expression, salt: str) -> Expression:
    return one.mapped(lambda found: _without_text(found, salt))


def _without_text(one: Expression, salt: str) -> Expression:
    if one.name == LITERAL and one.field("value") == "null":
        return one
    if one.name == LITERAL and one.field("dataType") in TEXTS:
        names: tuple[str, ...] = ("value",)
    else:
        names = ("options",) if one.field("options") is not None else ()
    if not names:
        return one
    fields = tuple(
        (k, json.dumps(hidden_text(v, salt)) if k in names else v) for k, v in one.fields
    )
    return replace(one, fields=fields)


def hidden_text(text: str, salt: str) -> str:
    key = salt.encode()[:64]
    return HIDDEN + hashlib.blake2b(text.encode(), key=key, digest_size=8).hexdigest()
