"""From the JSON that Spark makes of an analysed plan to a tree that can be compared. Pure.

Spark writes a plan as a flat list, each node before its children, and gives every column a
number. Here a number becomes what it stands for, from the sources upwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from floodmark.checkpoint.plan_tree import (
    COLUMN,
    LITERAL,
    OUTPUT,
    Expression,
    Fields,
    Input,
    PlanTree,
    Step,
    Watermark,
    in_order,
    words,
)

_TRANSPARENT = frozenset(
    [
        "SubqueryAlias",
        "View",
        "ResolvedHint",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "CollectMetrics",
        "LocalLimit",  # it goes with a GlobalLimit, and says the same
    ]
)
_WATERMARKS = frozenset({"EventTimeWatermark", "UpdateEventTimeWatermarkColumn"})
_LEAVES = frozenset({"StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation"})
# Numbers and places that Spark makes anew for each plan, and what says nothing about rows.
_VOLATILE = frozenset(
    [
        "class",
        "num-children",
        "exprId",
        "resultId",
        "jvmId",
        "nodeId",
        "qualifier",
        "metadata",
        "nullable",
        "nonInheritableMetadataKeys",
        "explicitMetadata",
        "allowMissingColumn",
        "planId",
        "tags",
        "child",
        "left",
        "right",
        "children",
        "unrequiredChildIndex",
        "outputPartitioning",
        "outputOrdering",
        "session",
        "rdd",
        "stats",
        "allowTemporaryList",
        "internalHintsAllowed",
        "origin",
    ]
)
# Left out of the JSON, and known by other means or of no meaning.
KNOWN_BY_OTHER_MEANS = frozenset(
    [
        "func",
        "hint",
        "delay",
        "rdd",
        "session",
        "dataSource",
        "relation",
        "id",
        "evalContext",
        "evalMode",
        "stream",
        "table",
        "catalog",
        "identifier",
        "streamingSourceIdentifyingName",
        "sourceIdentifyingName",
        "outputMode",
        "timeout",
        "timeMode",
        "v1Relation",
        "source",
        "extraOptions",
    ]
)
_COMMUTATIVE = frozenset(
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
_SEMI = ("LeftSemi", "LeftAnti")
_AGGREGATES = ("AggregateExpression", "PythonUDAF")


@dataclass(frozen=True)
class Facts:
    """What Spark's JSON leaves out, by the node's place in the list."""

    details: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    functions: Mapping[int, str] = field(default_factory=dict)
    """Digests of Python functions, by the number of the result."""
    canonical: str = ""
    tries: tuple[str, ...] = ()


@dataclass
class _Node:
    kind: str
    raw: Mapping[str, Any]
    place: int
    children: list[_Node]

    def expressions(self, name: str) -> list[Any]:
        """A field that is a list of expressions, each itself a flat list."""
        found = self.raw.get(name)
        return found if isinstance(found, list) else []


def read_plan(nodes: list[Mapping[str, Any]], facts: Facts) -> PlanTree:
    root, _ = _unfolded(nodes, 0)
    reader = _Reader(facts)
    outputs = reader.outputs(root)
    reader.need(root, set(outputs))
    fed = reader.build(root)
    columns = tuple(fed.environment.get(one, _nameless(one)) for one in outputs)
    unseen = tuple(sorted(reader.unseen))
    return PlanTree(fed.input, columns, facts.canonical, facts.tries, unseen)


def _unfolded(nodes: list[Mapping[str, Any]], at: int) -> tuple[_Node, int]:
    raw = nodes[at]
    node = _Node(_simple(raw["class"]), raw, at, [])
    at += 1
    for _ in range(int(raw["num-children"])):
        child, at = _unfolded(nodes, at)
        node.children.append(child)
    return node, at


def _simple(name: object) -> str:
    return str(name).rsplit(".", 1)[-1].rstrip("$").rsplit("$", 1)[-1]


def _nameless(number: int) -> Expression:
    return Expression(OUTPUT, (("number", str(number)),), label=f"column {number}")


@dataclass
class _Fed:
    input: Input
    environment: dict[int, Expression]
    streaming: bool


class _Reader:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.needed: dict[int, set[int]] = {}
        self.known_outputs: dict[int, list[int]] = {}
        self.counts: dict[str, int] = {}
        self.unseen: set[str] = set()

    def number(self, kind: str) -> int:
        self.counts[kind] = self.counts.get(kind, -1) + 1
        return self.counts[kind]

    # -- which columns there are, and which of them anybody uses

    def outputs(self, node: _Node) -> list[int]:
        if node.place not in self.known_outputs:
            self.known_outputs[node.place] = self._outputs(node)
        return self.known_outputs[node.place]

    def _outputs(self, node: _Node) -> list[int]:
        below = [self.outputs(child) for child in node.children]
        if node.kind == "Project":
            return _ids(node.expressions("projectList"))
        if node.kind == "Aggregate":
            return _ids(node.expressions("aggregateExpressions"))
        if node.kind == "Join":
            kind = _simple(_object(node.raw.get("joinType")))
            return below[0] if kind in _SEMI else below[0] + below[1]
        if node.kind == "Generate":
            return below[0] + _ids(node.expressions("generatorOutput"))
        for name in ("output", "outAttrs", "outputAttrs", "resultAttributes"):
            found = _ids(node.expressions(name))
            if found:
                return found
        if node.kind == "Window":
            return below[0] + _ids(node.expressions("windowExpressions"))
        return list(below[0]) if below else []

    def need(self, node: _Node, wanted: set[int]) -> None:
        self.needed[node.place] = wanted
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

    def _used(self, node: _Node, wanted: set[int]) -> set[int]:
        if node.kind == "Project":
            mine = [e for e in node.expressions("projectList") if _id(e) in wanted]
            return _references(mine)
        if node.kind == "Aggregate":
            mine = [e for e in node.expressions("aggregateExpressions") if _id(e) in wanted]
            return _references(mine) | _references(node.expressions("groupingExpressions"))
        if node.kind == "Expand" and node.expressions("projections"):
            places = self._wanted_places(node, wanted)
            return _references(
                [[row[at] for at in places] for row in node.expressions("projections")]
            )
        if node.kind in ("Filter", "Join", "Generate", "Deduplicate", "Sort", *_WATERMARKS) or (
            node.kind in _TRANSPARENT or node.kind == "DeduplicateWithinWatermark"
        ):
            return wanted | _references(list(node.raw.values()))
        return {one for child in node.children for one in self.outputs(child)}

    def _wanted_places(self, node: _Node, wanted: set[int]) -> list[int]:
        return [at for at, one in enumerate(self.outputs(node)) if one in wanted]

    # -- from the sources upwards

    def build(self, node: _Node) -> _Fed:
        if not node.children:
            return self._leaf(node)
        if node.kind == "Union":
            return self._union(node)
        if node.kind == "Join":
            return self._join(node)
        if len(node.children) == 1:
            fed = self.build(node.children[0])
            if node.kind in _TRANSPARENT:
                return fed
            known = None if _is_half_told(node) else _SINGLE.get(node.kind)
            return known(self, node, fed) if known else self._other(node, [fed])
        return self._other(node, [self.build(child) for child in node.children])

    def _leaf(self, node: _Node) -> _Fed:
        streaming = node.kind in _LEAVES or node.raw.get("isStreaming") is True
        kind = "Source" if streaming else "Static"
        number = self.number(kind)
        environment = {}
        told: Fields = ()
        for attribute in node.expressions("output"):
            one = attribute[0]
            fields = (
                (kind.lower(), str(number)),
                ("name", json.dumps(one.get("name"))),
                ("type", _type(one.get("dataType"))),
            )
            name = str(one.get("name"))
            environment[_exact_id(one)] = Expression(COLUMN, fields, label=name)
        # What a source reads, and how, stands in the outline of sources; a static table's here.
        if not streaming:
            extra = self.facts.details.get(node.place, {})
            told = (
                ("class", json.dumps(node.kind)),
                *self._fields(node, ("output",)),
                *_texts(extra),
            )
        step = Step(kind, (("number", str(number)), *told))
        return _Fed(Input(step), environment, streaming)

    def _project(self, node: _Node, fed: _Fed) -> _Fed:
        wanted = self.needed[node.place]
        environment = dict(fed.environment)
        for one in node.expressions("projectList"):
            if _id(one) in wanted:
                environment[_id(one)] = self.expression(one, fed.environment)
        return _Fed(fed.input, environment, fed.streaming)

    def _filter(self, node: _Node, fed: _Fed) -> _Fed:
        condition = self.expression(node.raw["condition"], fed.environment)
        found = in_order((*fed.input.conditions, *_conjuncts(condition)))
        return _Fed(
            Input(fed.input.step, found, fed.input.watermarks), fed.environment, fed.streaming
        )

    def _watermark(self, node: _Node, fed: _Fed) -> _Fed:
        event_time = node.raw["eventTime"]
        delay = self.facts.details.get(node.place, {}).get("delay_ms")
        mark = Watermark(
            self.expression(event_time, fed.environment), str(event_time[0].get("name")), delay
        )
        watermarks = (mark, *fed.input.watermarks) if fed.streaming else fed.input.watermarks
        return _Fed(
            Input(fed.input.step, fed.input.conditions, watermarks), fed.environment, fed.streaming
        )

    def _aggregate(self, node: _Node, fed: _Fed) -> _Fed:
        number = self.number("Aggregate")
        wanted = self.needed[node.place]
        keys = [
            self.expression(e, fed.environment) for e in node.expressions("groupingExpressions")
        ]
        functions: dict[Expression, int] = {}
        environment: dict[int, Expression] = {}

        def result(one: Expression) -> Expression:
            if one in keys:
                return _output("Aggregate", number, f"key {keys.index(one)}", one)
            if one.name in _AGGREGATES:
                at = functions.setdefault(one, len(functions))
                return _output("Aggregate", number, f"function {at}", one)
            return one

        for one in node.expressions("aggregateExpressions"):
            if _id(one) in wanted:
                whole = self.expression(one, fed.environment)
                environment[_id(one)] = _replaced(whole, result)
        step = Step(
            "Aggregate",
            expressions=(("keys", tuple(keys)), ("functions", tuple(functions))),
            inputs=(fed.input,),
            stateful=fed.streaming,
        )
        return _Fed(Input(step), environment, fed.streaming)

    def _deduplicate(self, node: _Node, fed: _Fed) -> _Fed:
        keys = [self.expression(e, fed.environment) for e in node.expressions("keys")]
        step = Step(node.kind, (), (("keys", tuple(keys)),), (fed.input,), stateful=fed.streaming)
        return _Fed(Input(step), fed.environment, fed.streaming)

    def _distinct(self, node: _Node, fed: _Fed) -> _Fed:
        keys = tuple(fed.environment.get(one, _nameless(one)) for one in self.outputs(node))
        step = Step("Distinct", (), (("keys", keys),), (fed.input,), stateful=fed.streaming)
        return _Fed(Input(step), fed.environment, fed.streaming)

    def _generate(self, node: _Node, fed: _Fed) -> _Fed:
        number = self.number("Generate")
        generator = self.expression(node.raw["generator"], fed.environment)
        environment = dict(fed.environment)
        for at, one in enumerate(node.expressions("generatorOutput")):
            environment[_id(one)] = _output("Generate", number, f"output {at}", one[0].get("name"))
        fields = (("outer", json.dumps(node.raw.get("outer"))),)
        step = Step("Generate", fields, (("generator", (generator,)),), (fed.input,))
        return _Fed(Input(step), environment, fed.streaming)

    def _expand(self, node: _Node, fed: _Fed) -> _Fed:
        number = self.number("Expand")
        places = self._wanted_places(node, self.needed[node.place])
        rows = [
            tuple(self.expression(row[at], fed.environment) for at in places)
            for row in node.expressions("projections")
        ]
        attributes = node.expressions("output")
        environment = {}
        expressions: list[tuple[str, tuple[Expression, ...]]] = []
        for column, at in enumerate(places):
            made = [row[column] for row in rows]
            attribute = attributes[at]
            if all(one == made[0] for one in made):  # passed on as it is
                environment[_id(attribute)] = made[0]
                continue
            reference = _output(
                "Expand", number, f"column {len(expressions)}", attribute[0].get("name")
            )
            environment[_id(attribute)] = reference
            expressions.append((f"column {len(expressions)}", tuple(made)))
        fields = (("rows", str(len(rows))),)
        return _Fed(
            Input(Step("Expand", fields, tuple(expressions), (fed.input,))),
            environment,
            fed.streaming,
        )

    def _union(self, node: _Node) -> _Fed:
        number = self.number("Union")
        places = self._wanted_places(node, self.needed[node.place])
        fed = [self.build(child) for child in node.children]
        expressions = []
        for at, (child, found) in enumerate(zip(node.children, fed, strict=True)):
            theirs = self.outputs(child)
            columns = tuple(found.environment.get(theirs[p], _nameless(p)) for p in places)
            expressions.append((f"columns of branch {at}", columns))
        mine = self.outputs(node)
        environment = {
            mine[place]: _output("Union", number, f"column {at}", expressions[0][1][at])
            for at, place in enumerate(places)
        }
        step = Step("Union", (), tuple(expressions), tuple(one.input for one in fed))
        return _Fed(Input(step), environment, any(one.streaming for one in fed))

    def _join(self, node: _Node) -> _Fed:
        left, right = self.build(node.children[0]), self.build(node.children[1])
        environment = {**left.environment, **right.environment}
        raw = node.raw.get("condition")
        condition = (
            in_order(_conjuncts(self.expression(raw, environment))) if isinstance(raw, list) else ()
        )
        stateful = left.streaming and right.streaming
        expressions: list[tuple[str, tuple[Expression, ...]]] = [("condition", condition)]
        if stateful:  # whole rows of both sides lie in the state
            for name, child, fed in (
                ("left columns", node.children[0], left),
                ("right columns", node.children[1], right),
            ):
                wanted = self.needed[child.place]
                columns = (one for one in self.outputs(child) if one in wanted)
                expressions.append(
                    (name, tuple(fed.environment.get(one, _nameless(one)) for one in columns))
                )
        kind = node.raw.get("joinType")
        fields = (("type", json.dumps(_simple(_object(kind)))),)
        step = Step("Join", fields, tuple(expressions), (left.input, right.input), stateful)
        return _Fed(Input(step), environment, left.streaming or right.streaming)

    def _other(self, node: _Node, fed: list[_Fed]) -> _Fed:
        """Any other step: everything that Spark says of it, and all columns that it is fed."""
        number = self.number(node.kind)
        environment: dict[int, Expression] = {}
        for one in fed:
            environment.update(one.environment)
        names = {"output", "outAttrs", "outputAttrs", "resultAttributes"}
        expressions: list[tuple[str, tuple[Expression, ...]]] = []
        for name, value in node.raw.items():
            if name not in names and _is_expressions(value):
                found = value if _is_list_of_lists(value) else [value]
                expressions.append((name, tuple(self.expression(e, environment) for e in found)))
        streaming = any(one.streaming for one in fed)
        # A limit over sorted rows is one of a complete result, and counts nothing.
        limits = node.kind == "GlobalLimit" and not any(
            one.kind == "Sort" for below in fed for one in below.input.step.walk()
        )
        stateful = streaming and ("WithState" in node.kind or limits)
        if "WithState" in node.kind or node.kind.startswith(("MapIn", "FlatMap", "MapPartitions")):
            for at, (child, one) in enumerate(zip(node.children, fed, strict=True)):
                columns = (one.environment.get(i, _nameless(i)) for i in self.outputs(child))
                expressions.append((f"columns {at}" if at else "columns", tuple(columns)))
        made = dict(environment)
        fresh = [one for one in self.outputs(node) if one not in environment]
        for at, one_id in enumerate(fresh):
            made[one_id] = _output(node.kind, number, f"output {at}", None)
        skipped = {name for name, value in node.raw.items() if _is_expressions(value)}
        fields = self._fields(node, (*names, *skipped))
        extra = _texts(self.facts.details.get(node.place, {}))
        step = Step(
            node.kind,
            (*fields, *extra),
            tuple(expressions),
            tuple(one.input for one in fed),
            stateful,
        )
        return _Fed(Input(step), made, streaming)

    # -- expressions

    def expression(self, flat: Any, environment: Mapping[int, Expression]) -> Expression:
        if isinstance(flat, list) and flat and isinstance(flat[0], list):
            children = tuple(self.expression(one, environment) for one in flat)
            return Expression("list", (), children)
        found, _ = self._parsed(flat, 0, environment)
        return found

    def _parsed(
        self, flat: list[Mapping[str, Any]], at: int, environment: Mapping[int, Expression]
    ) -> tuple[Expression, int]:
        raw = flat[at]
        kind = _simple(raw["class"])
        at += 1
        children = []
        for _ in range(int(raw["num-children"])):
            child, at = self._parsed(flat, at, environment)
            children.append(child)
        if kind in ("AttributeReference", "OuterReference"):
            number = _exact_id(raw)
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
            if name in _VOLATILE:
                continue
            if value is None and kind != LITERAL:
                self._left_out(kind, name)
            elif _is_expressions(value):
                children.append(self.expression(value, environment))
            else:
                fields.append((name, json.dumps(_plain(value), sort_keys=True)))
        if kind.startswith("Python"):
            digest = self.facts.functions.get(_result_id(raw))
            fields.append(("function", json.dumps(digest)))
        if kind in _MIRRORED and len(children) == 2:
            kind, children = _MIRRORED[kind], children[::-1]
        if kind in _FLAT:
            children = [part for child in children for part in _parts(child, kind)]
        if kind in _COMMUTATIVE:
            children = sorted(children, key=lambda one: one.digest)
        return Expression(kind, tuple(sorted(fields)), tuple(children))

    def _fields(self, node: _Node, without: Iterable[str]) -> Fields:
        found = []
        skipped = {*_VOLATILE, *without}
        for name, value in node.raw.items():
            if name in skipped:
                continue
            if value is None:
                self._left_out(node.kind, name)
            else:
                found.append((name, json.dumps(_plain(value), sort_keys=True)))
        return tuple(sorted(found))

    def _left_out(self, kind: str, name: str) -> None:
        if name not in KNOWN_BY_OTHER_MEANS:
            self.unseen.add(f"{kind}.{name}")


_SINGLE = {
    "Project": _Reader._project,
    "Filter": _Reader._filter,
    "Aggregate": _Reader._aggregate,
    "Deduplicate": _Reader._deduplicate,
    "DeduplicateWithinWatermark": _Reader._deduplicate,
    "Distinct": _Reader._distinct,
    "Generate": _Reader._generate,
    "Expand": _Reader._expand,
    **dict.fromkeys(_WATERMARKS, _Reader._watermark),
}


def _is_half_told(node: _Node) -> bool:
    """Spark's JSON leaves out what the step does: it is taken by its own words."""
    return node.kind == "Expand" and not node.expressions("projections")


def _output(kind: str, number: int, which: str, made_of: object) -> Expression:
    """What a step below puts out, by its place: a change below shows there, and not here too."""
    label = words(made_of) if isinstance(made_of, Expression) else str(made_of or which)
    return Expression(OUTPUT, (("of", f"{kind} {number} {which}"),), label=label)


def _replaced(one: Expression, change: Any) -> Expression:
    """As `mapped`, from the top: what was replaced is not looked into."""
    changed: Expression = change(one)
    if changed is not one:
        return changed
    children = tuple(_replaced(child, change) for child in one.children)
    return replace(one, children=children) if children else one


def _parts(one: Expression, kind: str) -> tuple[Expression, ...]:
    return one.children if one.name == kind else (one,)


def _conjuncts(condition: Expression) -> tuple[Expression, ...]:
    return _parts(condition, "And")


def _is_expressions(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    return (isinstance(first, dict) and "class" in first) or _is_expressions(first)


def _is_list_of_lists(value: list[Any]) -> bool:
    return isinstance(value[0], list)


def _id(flat: Any) -> int:
    return _exact_id(flat[0])


def _ids(found: list[Any]) -> list[int]:
    return [_id(one) for one in found]


def _exact_id(raw: Mapping[str, Any]) -> int:
    found = raw.get("exprId")
    return int(found["id"]) if isinstance(found, Mapping) else -1


def _result_id(raw: Mapping[str, Any]) -> int:
    found = raw.get("resultId")
    return int(found["id"]) if isinstance(found, Mapping) else -1


def _references(value: Any) -> set[int]:
    """The numbers of all columns that are mentioned anywhere below."""
    found: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, Mapping):
            if _simple(one.get("class", "")) == "AttributeReference":
                found.add(_exact_id(one))
            waiting.extend(value for key, value in one.items() if key != "exprId")
    return found


def _plain(value: Any) -> Any:
    """Without Spark's packages and without what its numbers make different each time."""
    if isinstance(value, Mapping):
        if "object" in value:
            return _simple(value["object"])
        kept = {k: _plain(v) for k, v in value.items() if k not in ("jvmId", "exprId", "metadata")}
        return {
            k: v
            for k, v in kept.items()
            if k not in ("nullable", "containsNull", "valueContainsNull")
        }
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _type(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _object(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("object") or value.get("product-class") or "")
    return str(value)


def _texts(details: Mapping[str, Any]) -> Fields:
    return tuple(sorted((str(key), json.dumps(value)) for key, value in details.items()))
