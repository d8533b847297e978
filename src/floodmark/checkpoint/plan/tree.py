"""A query's plan as a tree that can be compared: what each step keeps, and what it is fed.

Projections are laid into the expressions that use them, so that a column is what it is made
of and not what it is called. Names of columns that Spark numbers anew in every session, and
columns that nobody uses, are not in it. `checkpoint/plan/reading.py` makes it of Spark's JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

Fields = tuple[tuple[str, str], ...]
COLUMN, OUTPUT = "column", "output"
"""Expressions that are no functions: a source's column; what a step below puts out."""
LITERAL = "Literal"
NAMED = "named"
"""A column of rows that a state keeps: its label is the name that the state has for it."""
ABOVE = "above"
"""A condition on event time that does not keep the watermark from moving."""
KEY_ORDER = "key order"
"""The equalities of a join of streams, in the order of its state's keys."""
_TEXTS = ('"string"', '"binary"')
_READ_AS_JSON = ("name", "value", "type", "dataType")
_OF_ANOTHER = (NAMED, ABOVE, "Cast", "GetStructField")
"""Expressions that are nothing without the one that they are of."""
_HIDDEN = "text:"
_LONGEST = 400


@dataclass(frozen=True, eq=False)
class Expression:
    """One expression; two are equal if all that they are made of is."""

    name: str
    """Spark's class: Sum, Cast, EqualTo…"""
    fields: Fields = ()
    """What is not an expression: types, options, names; as JSON texts."""
    children: tuple[Expression, ...] = ()
    label: str = ""
    """What it is called where it is shown; two that differ in it alone are equal."""
    digest: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Taken from the children's digests: a column that is used often is read once.
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
        """This and all below it, each once."""
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
    """What a step is fed: another step's rows, less those that conditions leave out."""

    step: PlanStep
    conditions: tuple[Expression, ...] = ()
    watermarks: tuple[Watermark, ...] = ()


@dataclass(frozen=True)
class PlanStep:
    kind: str
    """Spark's class: Aggregate, Join, Deduplicate, Union, Generate, Source…"""
    fields: Fields = ()
    expressions: tuple[tuple[str, tuple[Expression, ...]], ...] = ()
    """By role: `keys`, `functions`, `condition`, `columns`, `left columns`…"""
    inputs: tuple[Input, ...] = ()
    stateful: bool = False

    def role(self, name: str) -> tuple[Expression, ...]:
        return next((found for role, found in self.expressions if role == name), ())

    def field(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key == name), None)

    def walk(self) -> Iterator[PlanStep]:
        """Nearest the sink first, as Spark numbers stateful operators."""
        yield self
        for one in self.inputs:
            yield from one.step.walk()


@dataclass(frozen=True)
class PlanTree:
    root: Input
    columns: tuple[Expression, ...]
    """What the sink is given, in order."""
    canonical: str = ""
    """A digest of Spark's own canonical form: equal plans have equal ones."""
    tries: tuple[str, ...] = ()
    """Functions that give null where others fail, try_sum say: the JSON has them as sum."""
    unseen: tuple[str, ...] = ()
    """What Spark's JSON leaves out of this plan, as Class.field."""
    untold: tuple[str, ...] = ()
    """What neither Spark nor its objects tell: what a Java function does, say."""
    salt: str | None = None
    """Set where texts are hidden: what they are hashed with."""

    def steps(self, *kinds: str) -> tuple[PlanStep, ...]:
        return tuple(one for one in self.root.step.walk() if not kinds or one.kind in kinds)

    @property
    def stateful(self) -> tuple[PlanStep, ...]:
        return tuple(one for one in self.steps() if one.stateful)

    @property
    def watermarks(self) -> tuple[Watermark, ...]:
        return tuple(_watermarks(self.root))

    def mapped(self, change: Callable[[Expression], Expression]) -> PlanTree:
        done: dict[Expression, Expression] = {}
        return replace(
            self,
            root=_mapped_input(self.root, lambda one: _mapped(one, change, done)),
            columns=tuple(_mapped(one, change, done) for one in self.columns),
        )

    def hidden(self, salt: str) -> PlanTree:
        """Without texts: a literal may be a key or a password, and a note is read by others."""
        if self.salt is not None:
            return self
        return replace(self.mapped(lambda one: _without_text(one, salt)), salt=salt)


def _watermarks(one: Input) -> Iterator[Watermark]:
    yield from one.watermarks
    for below in one.step.inputs:
        yield from _watermarks(below)


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
    """Each once, in an order that does not depend on how the code is written."""
    return tuple(sorted(set(expressions), key=lambda one: one.digest))


def hidden_expression(one: Expression, salt: str) -> Expression:
    return one.mapped(lambda found: _without_text(found, salt))


def _without_text(one: Expression, salt: str) -> Expression:
    if one.name == LITERAL and one.field("value") == "null":
        return one
    if one.name == LITERAL and one.field("dataType") in _TEXTS:
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
    return _HIDDEN + hashlib.blake2b(text.encode(), key=key, digest_size=8).hexdigest()


# -- to JSON and back ----------------------------------------------------------------------


def tree_to_json(tree: PlanTree) -> dict[str, object]:
    """Each expression once, by its place in a list: they are used again and again."""
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
    """None where it is not such a tree: a note is a file that anybody may have written."""
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
    """What readers of an expression rely on, whoever wrote it."""
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


# -- in words ------------------------------------------------------------------------------

_SIGNS = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "And": "AND",
    "Or": "OR",
}
_WRAPPERS = ("AggregateExpression", "KnownNullable", "PreciseTimestampConversion")
_NAMES = {
    "ApproximatePercentile": "percentile_approx",
    "Average": "avg",
    "BitAndAgg": "bit_and",
    "BitOrAgg": "bit_or",
    "BitXorAgg": "bit_xor",
    "CountMinSketchAgg": "count_min_sketch",
    "CovPopulation": "covar_pop",
    "CovSample": "covar_samp",
    "HyperLogLogPlusPlus": "approx_count_distinct",
    "ListAgg": "listagg",
    "VariancePop": "var_pop",
    "VarianceSamp": "var_samp",
}


def words(one: Expression, texts: bool = True) -> str:
    """The expression as a person would write it, near enough to tell two apart.

    Without `texts`, literals of the code are not repeated.
    """
    return _words(one, [_LONGEST], texts)


def _words(one: Expression, budget: list[int], texts: bool) -> str:
    budget[0] -= 1
    if budget[0] < 0:
        return "…"
    if one.name in (COLUMN, OUTPUT, "NamedLambdaVariable"):
        return one.label
    if one.name == LITERAL:
        return _literal(one, texts)
    if one.name == NAMED:
        return _words(one.children[0], budget, texts)
    if one.name == ABOVE:
        return f"{_words(one.children[0], budget, texts)} above the watermark"
    inner = [_words(child, budget, texts) for child in one.children]
    if one.name in _SIGNS and len(inner) >= 2:
        return "(" + f" {_SIGNS[one.name]} ".join(inner) + ")"
    if one.name in _WRAPPERS and inner:
        distinct = "DISTINCT " if one.field("isDistinct") == "true" else ""
        where = f" FILTER (WHERE {inner[1]})" if len(inner) > 1 else ""
        return f"{distinct}{inner[0]}{where}"
    if one.name == "Cast":
        return f"cast({inner[0]} as {json.loads(one.field('dataType') or '{}')})"
    if one.name == "GetStructField":
        return f"{inner[0]}.{json.loads(one.field('name') or 'null') or one.field('ordinal')}"
    if one.name in ("PythonUDF", "PythonUDAF"):
        name = one.label or json.loads(one.field("name") or "0")
        return f"{name}({', '.join(inner)})"
    flags = [key for key, value in one.fields if value == "true" and key.startswith("ignore")]
    return f"{function_name(one)}({', '.join([*inner, *flags])})"


def function_name(one: Expression) -> str:
    """`sum` of Sum, `collect_list` of CollectList: as SQL spells it."""
    if one.name in _NAMES:
        return _NAMES[one.name]
    return "".join(
        f"_{c.lower()}" if c.isupper() and at else c.lower() for at, c in enumerate(one.name)
    )


def _literal(one: Expression, texts: bool) -> str:
    value = json.loads(one.field("value") or "null")
    if value is None:
        return "NULL"
    if one.field("dataType") in _TEXTS:
        return f"'{value}'" if texts and not str(value).startswith(_HIDDEN) else "a text"
    return str(value)
