"""Expressions of a plan, from Spark's JSON; a column is replaced by what it is made of. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from floodmark.checkpoint.plan_json import (
    KNOWN_BY_OTHER_MEANS,
    VOLATILE,
    expression_id,
    is_expressions,
    plain,
    result_id,
    simple_name,
)
from floodmark.checkpoint.plan_tree import LITERAL, OUTPUT, Expression, Fields

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
_FLAT = frozenset({"And", "Or"})


class ExpressionReader:
    def __init__(self, functions: Mapping[int, str]) -> None:
        self._functions = functions
        self.unseen: set[str] = set()
        """What Spark's JSON leaves out, as Class.field."""

    def read(self, flat: Any, environment: Mapping[int, Expression]) -> Expression:
        if isinstance(flat, list) and flat and isinstance(flat[0], list):
            children = tuple(self.read(one, environment) for one in flat)
            return Expression("list", (), children)
        found, _ = self._parsed(flat, 0, environment)
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
            number = expression_id(raw)
            if number in environment:
                return environment[number], at
            name = str(raw.get("name"))
            return Expression(OUTPUT, (("name", json.dumps(name)),), label=name), at
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
        for name, value in raw.items():
            if name in VOLATILE:
                continue
            if value is None and kind != LITERAL:
                self._left_out(kind, name)
            elif is_expressions(value):
                children.append(self.read(value, environment))
            else:
                fields.append((name, json.dumps(plain(value), sort_keys=True)))
        if kind.startswith("Python"):
            digest = self._functions.get(result_id(raw))
            fields.append(("function", json.dumps(digest)))
        if kind in _MIRRORED and len(children) == 2:
            kind, children = _MIRRORED[kind], children[::-1]
        if kind in _FLAT:
            children = [part for child in children for part in parts_of(child, kind)]
        if kind in COMMUTATIVE:
            children = sorted(children, key=lambda one: one.digest)
        return Expression(kind, tuple(sorted(fields)), tuple(children))

    def fields(self, kind: str, raw: Mapping[str, Any], without: Iterable[str]) -> Fields:
        found = []
        skipped = {*VOLATILE, *without}
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


def parts_of(one: Expression, kind: str) -> tuple[Expression, ...]:
    return one.children if one.name == kind else (one,)
