"""Finds the columns that each node of a plan outputs, and which of them are used. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.plan.spark_json import id_of, ids_of, object_name, references, simple_name

TRANSPARENT = frozenset(
    [
        "SubqueryAlias",
        "View",
        "ResolvedHint",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "CollectMetrics",
        "LocalLimit",  # always stands with a GlobalLimit, which says the same
    ]
)
WATERMARKS = frozenset({"EventTimeWatermark", "UpdateEventTimeWatermarkColumn"})
_SEMI = ("LeftSemi", "LeftAnti")


@dataclass
class Node:
    kind: str
    raw: Mapping[str, Any]
    place: int
    children: list[Node]

    def expressions(self, name: str) -> list[Any]:
        """Return a field that is a list of expressions, each itself a flat list."""
        found = self.raw.get(name)
        return found if isinstance(found, list) else []


def unfolded(nodes: list[Mapping[str, Any]], at: int) -> tuple[Node, int]:
    raw = nodes[at]
    node = Node(simple_name(raw["class"]), raw, at, [])
    at += 1
    for _ in range(int(raw["num-children"])):
        child, at = unfolded(nodes, at)
        node.children.append(child)
    return node, at


def inlined(node: Node, known: dict[Any, Node] | None = None) -> Node:
    """Replace each use of a common table expression by its definition, as Spark does.

    Otherwise the steps of a CTE would stand beside the state that they feed, and not below it.
    """
    known = {} if known is None else known
    if node.kind == "CTERelationRef":
        made = known.get(node.raw.get("cteId"))
        return node if made is None else _renamed(node, _copied(made))
    children = []
    for child in node.children:
        found = inlined(child, known)
        if node.kind == "WithCTE" and found.kind == "CTERelationDef":
            known[found.raw.get("id")] = found.children[0]
        else:
            children.append(found)
    if node.kind == "WithCTE" and len(children) == 1:
        return children[0]
    return Node(node.kind, node.raw, node.place, children)


def _copied(node: Node) -> Node:
    return Node(node.kind, node.raw, node.place, [_copied(child) for child in node.children])


def _renamed(use: Node, made: Node) -> Node:
    """Give the columns of one use of a CTE their own numbers, as Spark does."""
    project = [
        [{**attribute[0], "class": "Alias", "num-children": 1}, _attribute(number)]
        for attribute, number in zip(
            use.expressions("output"), Columns().outputs(made), strict=False
        )
    ]
    return Node("Project", {"projectList": project}, use.place, [made])


def _attribute(number: int) -> dict[str, Any]:
    return {"class": "AttributeReference", "num-children": 0, "exprId": {"id": number}}


class Columns:
    """The columns of each node, by Spark's numbers.

    Nodes are known by their identity, because a CTE is read once for each use.
    """

    def __init__(self) -> None:
        self.needed: dict[int, set[int]] = {}
        self._known: dict[int, list[int]] = {}

    def outputs(self, node: Node) -> list[int]:
        if id(node) not in self._known:
            self._known[id(node)] = self._outputs(node)
        return self._known[id(node)]

    def _outputs(self, node: Node) -> list[int]:
        below = [self.outputs(child) for child in node.children]
        if node.kind == "Project":
            return ids_of(node.expressions("projectList"))
        if node.kind == "Aggregate":
            return ids_of(node.expressions("aggregateExpressions"))
        if node.kind == "Join":
            kind = simple_name(object_name(node.raw.get("joinType")))
            return below[0] if kind in _SEMI else below[0] + below[1]
        if node.kind == "Generate":
            return below[0] + ids_of(node.expressions("generatorOutput"))
        for name in ("output", "outAttrs", "outputAttrs", "resultAttributes"):
            found = ids_of(node.expressions(name))
            if found:
                return found
        if node.kind == "Window":
            return below[0] + ids_of(node.expressions("windowExpressions"))
        return list(below[0]) if below else []

    def need(self, node: Node, wanted: set[int]) -> None:
        self.needed[id(node)] = wanted
        if node.kind == "Union":
            mine = self.outputs(node)
            places = [at for at, one in enumerate(mine) if one in wanted]
            for child in node.children:
                theirs = self.outputs(child)
                self.need(child, {theirs[at] for at in places if at < len(theirs)})
            return
        used = self._used(node, wanted)
        for child in node.children:
            self.need(child, used & set(self.outputs(child)))

    def _used(self, node: Node, wanted: set[int]) -> set[int]:
        if node.kind == "Project":
            mine = [e for e in node.expressions("projectList") if id_of(e) in wanted]
            return references(mine)
        if node.kind == "Aggregate":
            mine = [e for e in node.expressions("aggregateExpressions") if id_of(e) in wanted]
            return references(mine) | references(node.expressions("groupingExpressions"))
        if node.kind == "Expand" and node.expressions("projections"):
            places = self.wanted_places(node, wanted)
            return references(
                [[row[at] for at in places] for row in node.expressions("projections")]
            )
        if node.kind in ("Filter", "Join", "Generate", "Deduplicate", "Sort", *WATERMARKS) or (
            node.kind in TRANSPARENT or node.kind == "DeduplicateWithinWatermark"
        ):
            return wanted | references(list(node.raw.values()))
        return {one for child in node.children for one in self.outputs(child)}

    def wanted_places(self, node: Node, wanted: set[int]) -> list[int]:
        return [at for at, one in enumerate(self.outputs(node)) if one in wanted]
