"""Reads expressions of a plan from Spark's JSON, and replaces columns by their definition. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from floodmark.checkpoint.plan.spark_json import (
    KNOWN_BY_OTHER_MEANS,
    VOLATILE,
    expression_id,
    is_expressions,
    plain,
    result_id,
    simple_name,
)
from floodmark.checkpoint.plan.tree import LITERAL, OUTPUT, SQL_VARIABLE, Expression, Fields

COMMUTATIVE = frozenset(
    [
        "And",
        "Or",
        "Add",
        "Multiply",
        "EqualTo",
        "EqualNullSafe",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "Greatest",
        "Least",
    ]
)
_MIRRORED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_LAMBDA, _VARIABLE = "LambdaFunction", "NamedLambdaVariable"
_SEEDED = ("Rand", "Randn")
_RANDOM = (*_SEEDED, "Uuid", "Shuffle", "RandStr", "Uniform")
_SEEDS = ("hideSeed", "randomSeed", "seed", "seedExpression")
_REPLACED = ("Between", "Nvl", "ParseToDate")
"""Functions that Spark replaces by other expressions, which say everything."""
_OF_THE_JVM = ("ScalaUDF", "ScalaUDAF", "ScalaAggregator")
_FLAT = frozenset({"And", "Or"})


class ExpressionReader:
    def __init__(self, functions: Mapping[int, str]) -> None:
        self._functions = functions
        self.unseen: set[str] = set()
        """Fields that Spark's JSON leaves out, as Class.field."""
        self.untold: set[str] = set()
        """Functions of JVM code: Spark knows only their names."""

    def read(self, flat: Any, environment: Mapping[int, Expression]) -> Expression:
        if isinstance(flat, list) and flat and isinstance(flat[0], list):
            children = tuple(self.read(one, environment) for one in flat)
            return Expression("list", (), children)
        found, _ = self._parsed(flat, 0, environment)
        return found

    def conjuncts(self, flat: Any, environment: Mapping[int, Expression]) -> list[Expression]:
        """Return the parts of A AND B AND C, in the order of the code."""
        found: list[Expression] = []
        at, left = 0, 1
        while left:
            if simple_name(flat[at]["class"]) == "And":
                at, left = at + 1, left + 1
            else:
                one, at = self._parsed(flat, at, environment)
                found.extend(parts_of(one, "And"))  # BETWEEN is read as two comparisons
                left -= 1
        return found

    def _parsed(
        self, flat: list[Mapping[str, Any]], at: int, environment: Mapping[int, Expression]
    ) -> tuple[Expression, int]:
        raw = flat[at]
        kind = simple_name(raw["class"])
        at += 1
        children = []
        for _ in range(int(raw["num-children"])):
            child, at = self._parsed(flat, at, environment)
            children.append(child)
        if kind in ("AttributeReference", "OuterReference"):
            inner = raw.get("e")
            raw = inner[0] if isinstance(inner, list) else raw
            number = expression_id(raw)
            if number in environment:
                return environment[number], at
            name = str(raw.get("name"))
            fields: Fields = (("name", json.dumps(name)),)
            if "place" in raw:  # a column of a subquery: two of its tables may use one name
                fields = (*fields, ("place", str(raw["place"])))
            return Expression(OUTPUT, fields, label=name), at
        if kind == "Alias":
            return children[0], at
        return self._made(kind, raw, children, environment), at

    def _made(
        self,
        kind: str,
        raw: Mapping[str, Any],
        children: list[Expression],
        environment: Mapping[int, Expression],
    ) -> Expression:
        fields = []
        label = ""
        if kind == SQL_VARIABLE and (value := _current_value(raw)) is not None:
            # Its default and its name are not read: the query has the value of its analysis.
            return Expression(kind, (), (self.read(value, environment),), _variable_name(raw))
        for name, value in raw.items():
            if name in VOLATILE:
                continue
            if kind == _VARIABLE and name in ("name", "value"):
                continue  # the lambda function says which variable it is
            if value is None and kind != LITERAL:
                self._left_out(kind, name)
            elif kind == "GetStructField" and name == "name":
                fields.append((name, json.dumps(str(value).lower())))  # as written: r.A, r.a
            elif is_expressions(value):
                children.append(self.read(value, environment))
            elif kind == "CaseWhen" and name == "branches":
                continue  # the same conditions and values are its children
            else:
                fields.append((name, json.dumps(plain(value), sort_keys=True)))
        if kind in _OF_THE_JVM or kind.startswith("Hive"):
            self.untold.add(
                f"what the function {raw.get('udfName') or raw.get('name') or kind} does"
            )
        if kind == _VARIABLE:
            fields.append(("variable", str(expression_id(raw))))
            return Expression(kind, tuple(sorted(fields)), (), str(raw.get("name")))
        if kind == _LAMBDA:
            return _numbered(Expression(kind, tuple(sorted(fields)), tuple(children)))
        if kind == "With":
            return _written_out(Expression(kind, tuple(sorted(fields)), tuple(children)))
        if kind in _REPLACED and raw.get("replacement") == 0:
            return children[0]
        if kind in _RANDOM:
            # A seed is drawn anew for each plan where the code gives none, and does not say so.
            children = [] if kind in _SEEDED else children
            fields = [one for one in fields if one[0] not in _SEEDS]
        if kind.startswith("Python"):
            digest = self._functions.get(result_id(raw))
            fields.append(("function", json.dumps(digest)))
            if digest is not None:  # what it does is known, and its name says no more
                fields = [one for one in fields if one[0] != "name"]
                label = str(raw.get("name"))
        if kind in _MIRRORED and len(children) == 2:
            kind, children = _MIRRORED[kind], children[::-1]
        if kind in _FLAT:
            children = [part for child in children for part in parts_of(child, kind)]
        return _resorted(Expression(kind, tuple(sorted(fields)), tuple(children), label))

    def fields(self, kind: str, raw: Mapping[str, Any], without: Iterable[str]) -> Fields:
        found = []
        skipped = {*VOLATILE, *without, *(_SEEDS if kind == "Sample" else ())}
        for name, value in raw.items():
            if name in skipped:
                continue
            if value is None:
                self._left_out(kind, name)
            else:
                found.append((name, json.dumps(plain(value), sort_keys=True)))
        return tuple(sorted(found))

    def _left_out(self, kind: str, name: str) -> None:
        # The rows of a LocalRelation have a digest among the facts.
        if name not in KNOWN_BY_OTHER_MEANS and (kind, name) != ("LocalRelation", "data"):
            self.unseen.add(f"{kind}.{name}")


def _numbered(function: Expression) -> Expression:
    """Number a lambda's variables by their place.

    The user chooses their names, or the session counts them.
    """
    inner = (int(one.field("level") or 0) for one in function.walk() if one.name == _LAMBDA)
    level = 1 + max(inner, default=0)
    places = {
        one.field("variable"): f"{level}.{at}" for at, one in enumerate(function.children[1:])
    }

    def change(one: Expression) -> Expression:
        if one.name != _VARIABLE or one.field("variable") not in places:
            return _resorted(one)
        fields = ((k, places[v] if k == "variable" else v) for k, v in one.fields)
        return replace(one, fields=tuple(fields))

    children = tuple(one.mapped(change) for one in function.children)
    fields = (*function.fields, ("level", str(level)))
    return replace(function, fields=fields, children=children)


def _resorted(one: Expression) -> Expression:
    """Sort the sides, and the values of an IN, so that the order in the code does not matter."""
    if one.name not in COMMUTATIVE and one.name != "In":
        return one
    first = 1 if one.name == "In" else 0  # what is looked for
    rest = sorted(one.children[first:], key=lambda found: found.digest)
    return replace(one, children=(*one.children[:first], *rest))


def _written_out(one: Expression) -> Expression:
    """Replace SQL's named value: for `v BETWEEN 1 AND 2` Spark names v, and compares the name
    twice.
    """
    if len(one.children) != 2 or one.children[1].name != "CommonExpressionDef":
        return one
    meant = one.children[1].children[0]
    return one.children[0].mapped(
        lambda found: meant if found.name == "CommonExpressionRef" else _resorted(found)
    )


def _current_value(raw: Mapping[str, Any]) -> Any:
    """Return the value that a variable of DECLARE VARIABLE had when the query was analysed."""
    declared = raw.get("varDef")
    value = declared.get("currentValue") if isinstance(declared, Mapping) else None
    return value if is_expressions(value) else None


def _variable_name(raw: Mapping[str, Any]) -> str:
    """Return `a.b` for the parts that Spark writes as `[a, b]`."""
    return str(raw.get("originalNameParts")).strip("[]").replace(", ", ".")


def parts_of(one: Expression, kind: str) -> tuple[Expression, ...]:
    return one.children if one.name == kind else (one,)
