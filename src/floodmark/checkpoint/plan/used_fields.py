"""Finds the fields of a struct that the steps above a join of streams use. Pure.

Spark's optimizer takes them out below the join: of `r`, the state then keeps `r.a` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.checkpoint.plan.columns import TRANSPARENT, WATERMARKS, Columns, Node
from floodmark.checkpoint.plan.spark_json import (
    expression_id,
    id_of,
    is_expressions,
    references,
    simple_name,
)
from floodmark.checkpoint.plan.tree import Expression

Path = tuple[tuple[str, str], ...]
"""From a column to one of its fields: (Spark's class, its argument). () is the whole column."""
_FIELDS = {"GetStructField": "name", "GetArrayStructFields": "field"}
_ITEMS = frozenset({"GetArrayItem", "GetMapValue"})
_PASSING = frozenset(
    [
        *("Filter", "Join", "Generate", "Deduplicate", "DeduplicateWithinWatermark", "Sort"),
        "GlobalLimit",
    ]
)
_WHOLE: Path = ()


class UsedFields:
    def __init__(self, root: Node, columns: Columns) -> None:
        self._columns = columns
        self._used: dict[int, dict[int, set[Path]]] = {}
        self._go(root, {one: {_WHOLE} for one in columns.outputs(root)})

    def of(self, node: Node, column: int) -> tuple[Path, ...]:
        """Return the fields of a node's column that are used above it."""
        found = self._used.get(id(node), {}).get(column, {_WHOLE})
        return (_WHOLE,) if _WHOLE in found else tuple(sorted(found))

    def _go(self, node: Node, used: dict[int, set[Path]]) -> None:
        self._used[id(node)] = used
        if node.kind == "Union":
            mine = self._columns.outputs(node)
            for child in node.children:
                theirs = self._columns.outputs(child)
                pairs = zip(theirs, mine, strict=False)
                self._go(child, {their: used[one] for their, one in pairs if one in used})
            return
        below = _Uses()
        if node.kind == "Project":
            for one in node.expressions("projectList"):
                below.named(one, used.get(id_of(one), set()))
        elif node.kind == "Aggregate" or _passes(node):
            for column, paths in used.items() if _passes(node) else ():
                below.add(column, paths)
            for value in node.raw.values():
                below.expressions(value)
        else:
            for column in (one for child in node.children for one in self._columns.outputs(child)):
                below.add(column, {_WHOLE})
        for child in node.children:
            outputs = self._columns.outputs(child)
            self._go(child, {one: below.found[one] for one in outputs if one in below.found})


def _passes(node: Node) -> bool:
    """Whether a node's columns are those of its inputs."""
    return node.kind in _PASSING or node.kind in WATERMARKS or node.kind in TRANSPARENT


class _Uses:
    def __init__(self) -> None:
        self.found: dict[int, set[Path]] = {}

    def add(self, column: int, paths: set[Path]) -> None:
        if paths:
            self.found.setdefault(column, set()).update(paths)

    def named(self, flat: list[Mapping[str, Any]], paths: set[Path]) -> None:
        """Add what an output column uses whose own `paths` are used above."""
        if not paths:
            return
        top = _Part.read(flat)
        made = top.children[0] if top.kind == "Alias" else top
        place = made.place()
        if place is None:
            self.part(top)
        else:
            self.add(place[0], {(*place[1], *one) for one in paths})

    def expressions(self, value: Any) -> None:
        """Add what expressions use, at any depth of lists."""
        if not is_expressions(value):
            return
        if isinstance(value[0], list):
            for one in value:
                self.expressions(one)
        else:
            self.part(_Part.read(value))

    def part(self, part: _Part) -> None:
        place = part.place() if part.kind in _FIELDS or not part.children else None
        if place is not None:
            self.add(place[0], {place[1]})
            return
        for one in references([v for v in part.raw.values() if is_expressions(v)]):
            self.add(one, {_WHOLE})
        for child in part.children:
            self.part(child)


class _Part:
    """An expression with its children; Spark's JSON is a flat list of them."""

    def __init__(self, raw: Mapping[str, Any], rest: Iterator[Mapping[str, Any]]) -> None:
        self.raw = raw
        self.kind = simple_name(raw["class"])
        self.children = [_Part(next(rest), rest) for _ in range(int(raw["num-children"]))]

    @classmethod
    def read(cls, flat: list[Mapping[str, Any]]) -> _Part:
        rest = iter(flat)
        return cls(next(rest), rest)

    def place(self) -> tuple[int, Path] | None:
        """Return the column and the path in it that this is; None for any other expression."""
        if self.kind == "AttributeReference":
            return expression_id(self.raw), _WHOLE
        below = self.children[0].place() if self.kind in {*_FIELDS, *_ITEMS} else None
        return below and (below[0], (*below[1], (self.kind, self._argument())))

    def _argument(self) -> str:
        if self.kind in _FIELDS:
            field = self.raw.get(_FIELDS[self.kind])
            name = field.get("name") if isinstance(field, Mapping) else field
            return json.dumps([str(name).lower(), self.raw.get("ordinal")])
        return json.dumps([{"value": one.raw.get("value")} for one in self.children[1:]])


def field_of(column: Expression, path: Path) -> Expression:
    """Return the field of a column to which a path leads."""
    for kind, argument in path:
        told = json.loads(argument)
        names = ("name", "ordinal") if kind in _FIELDS else ("item",)
        fields = tuple((name, json.dumps(one)) for name, one in zip(names, told, strict=False))
        column = Expression(kind, fields, (column,))
    return column


def name_of(path: Path) -> str:
    """Return the name that Spark gives a field in the state; "" for the whole column."""
    names = [json.loads(argument)[0] for kind, argument in path if kind in _FIELDS]
    return f"_extract_{names[-1]}" if names else ""
