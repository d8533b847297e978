"""Turns the JSON of an analysed plan into a tree that can be compared. Pure.

Spark writes a plan as a flat list, each node before its children, and gives every column a number.
This module replaces each number by the column's definition, from the sources upwards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from floodmark.checkpoint.plan.columns import (
    TRANSPARENT,
    WATERMARKS,
    Columns,
    Node,
    inlined,
    unfolded,
)
from floodmark.checkpoint.plan.event_time import placed, unmarked
from floodmark.checkpoint.plan.expressions import ExpressionReader, parts_of
from floodmark.checkpoint.plan.made_columns import Fed, nameless, output_of, replaced
from floodmark.checkpoint.plan.spark_json import (
    as_fields,
    expression_id,
    id_of,
    ids_of,
    is_expressions,
    is_nested,
    names_of,
    object_name,
    references,
    result_id,
    simple_name,
    type_json,
)
from floodmark.checkpoint.plan.tree import (
    COLUMN,
    KEY_ORDER,
    LITERAL,
    NAMED,
    SOURCE_CODE,
    Expression,
    Fields,
    Input,
    PlanStep,
    PlanTree,
    Watermark,
    in_order,
)

_LEAVES = frozenset({"StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation"})
_AGGREGATES = ("AggregateExpression", "PythonUDAF")


@dataclass(frozen=True)
class Facts:
    """Facts that Spark's JSON leaves out, by the node's place in the list."""

    details: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    functions: Mapping[int, str] = field(default_factory=dict)
    """Digests of Python functions, by the number of their result."""
    canonical: str = ""
    tries: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    marked: frozenset[int] = frozenset()
    """The numbers of the columns that carry a watermark."""
    ranks: Mapping[int, int] = field(default_factory=dict)
    """The rank of an aggregate after Spark's optimizer, by the number of its result. A `select`
    above aggregates puts them into its own order, and the state keeps that order."""
    joined: tuple[JoinedColumns, ...] | None = None
    """What the rows of each join of streams hold after Spark's optimizer; None: whole columns."""


JoinedColumns = tuple[tuple[Expression, ...], tuple[Expression, ...]]
"""Of a join's left and right side: its columns in their order, and the steps that make rows."""


def read_plan(nodes: list[Mapping[str, Any]], facts: Facts) -> PlanTree:
    root = inlined(unfolded(nodes, 0)[0])
    reader = _JsonReader(facts)
    reader.names = names_of(nodes)
    outputs = reader.columns.outputs(root)
    reader.columns.need(root, set(outputs))
    fed = reader.build(root)
    if facts.joined is not None and len(reader.joins) != len(facts.joined):
        raise ValueError("the optimizer has another number of joins")
    columns = tuple(fed.environment.get(one, nameless(one)) for one in outputs)
    unseen = tuple(sorted(reader.expressions.unseen))
    untold = tuple(sorted({*facts.untold, *reader.expressions.untold}))
    return PlanTree(fed.input, columns, facts.canonical, facts.tries, unseen, untold)


def read_joins(nodes: list[Mapping[str, Any]], facts: Facts) -> tuple[JoinedColumns, ...]:
    """Return what the rows of each join of streams hold, by a plan that Spark has optimized.

    Of a struct, the optimizer leaves the fields that are used, as columns of their own.
    """
    root = unfolded(nodes, 0)[0]
    reader = _JsonReader(facts, spells_out=True)
    reader.names = names_of(nodes)
    reader.columns.need(root, set(reader.columns.outputs(root)))
    reader.build(root)
    return tuple(reader.joins)


class _JsonReader:
    def __init__(self, facts: Facts, spells_out: bool = False) -> None:
        """`spells_out`: a column that a step makes holds how, as if nothing told of the step."""
        self.facts = facts
        self.spells_out = spells_out
        self.columns = Columns()
        self.expressions = ExpressionReader(facts.functions)
        self.counts: dict[str, int] = {}
        self.names: Mapping[int, str] = {}
        self.joins: list[JoinedColumns] = []

    def number(self, kind: str) -> int:
        self.counts[kind] = self.counts.get(kind, -1) + 1
        return self.counts[kind]

    def build(self, node: Node) -> Fed:
        if not node.children:
            return self._leaf(node)
        if node.kind == "Union":
            return self._union(node)
        if node.kind == "Join":
            return self._join(node)
        if len(node.children) == 1:
            fed = self.build(node.children[0])
            if node.kind in TRANSPARENT:
                return fed
            known = None if _lacks_its_fields(node) else _SINGLE.get(node.kind)
            return known(self, node, fed) if known else self._other(node, [fed])
        return self._other(node, [self.build(child) for child in node.children])

    def _leaf(self, node: Node) -> Fed:
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
                ("type", type_json(one.get("dataType"))),
            )
            name = str(one.get("name"))
            environment[expression_id(one)] = Expression(COLUMN, fields, label=name)
        # What a source reads, and how, stands in the outline of sources; a static table's here.
        extra = self.facts.details.get(node.place, {})
        if streaming:
            told = as_fields({k: v for k, v in extra.items() if k == SOURCE_CODE})
        else:
            told = (
                ("class", json.dumps(node.kind)),
                *self.expressions.fields(node.kind, node.raw, ("output",)),
                *as_fields(extra),
            )
        step = PlanStep(kind, (("number", str(number)), *told))
        return Fed(Input(step), environment, streaming)

    def _project(self, node: Node, fed: Fed) -> Fed:
        wanted = self.columns.needed[id(node)]
        # Only the output columns: both sides of a self-join have the same numbers below.
        environment = {
            id_of(one): self.expressions.read(one, fed.environment)
            for one in node.expressions("projectList")
            if id_of(one) in wanted
        }
        return Fed(fed.input, environment, fed.streaming)

    def _filter(self, node: Node, fed: Fed) -> Fed:
        condition = self.expressions.read(node.raw["condition"], fed.environment)
        marked = [mark.column for mark in fed.input.watermarks]
        said = [placed(one, marked) for one in parts_of(condition, "And") if not _is_true(one)]
        found = in_order((*fed.input.conditions, *said))
        return Fed(
            Input(fed.input.step, found, fed.input.watermarks), fed.environment, fed.streaming
        )

    def _watermark(self, node: Node, fed: Fed) -> Fed:
        event_time = node.raw["eventTime"]
        delay = self.facts.details.get(node.place, {}).get("delay_ms")
        mark = Watermark(
            self.expressions.read(event_time, fed.environment),
            str(event_time[0].get("name")),
            delay,
        )
        watermarks = (mark, *fed.input.watermarks) if fed.streaming else fed.input.watermarks
        return Fed(
            Input(fed.input.step, fed.input.conditions, watermarks), fed.environment, fed.streaming
        )

    def _aggregate(self, node: Node, fed: Fed) -> Fed:
        number = self.number("Aggregate")
        wanted = self.columns.needed[id(node)]
        keys = [
            self.expressions.read(e, fed.environment)
            for e in node.expressions("groupingExpressions")
        ]
        functions: dict[Expression, int] = {}
        environment: dict[int, Expression] = {}

        def result(one: Expression) -> Expression:
            if one in keys:
                return output_of("Aggregate", number, f"key {keys.index(one)}", one)
            if one.name in _AGGREGATES:
                at = functions.setdefault(one, len(functions))
                return output_of("Aggregate", number, f"function {at}", one)
            return one

        for one in sorted(node.expressions("aggregateExpressions"), key=self._rank):
            if id_of(one) in wanted:
                whole = self.expressions.read(one, fed.environment)
                environment[id_of(one)] = replaced(whole, result)
        plain = [e[0] for e in node.expressions("groupingExpressions") if len(e) == 1]
        step = PlanStep(
            "Aggregate",
            unmarked([expression_id(one) for one in plain], fed, self.facts.marked),
            expressions=(("keys", tuple(keys)), ("functions", tuple(functions))),
            inputs=(fed.input,),
            stateful=fed.streaming,
        )
        return Fed(Input(step), environment, fed.streaming)

    def _rank(self, one: list[Mapping[str, Any]]) -> int:
        """Return an aggregate's rank; without ranks, sorting keeps the order of the code."""
        ranks = self.facts.ranks
        return min((ranks[number] for raw in one if (number := result_id(raw)) in ranks), default=0)

    def _deduplicate(self, node: Node, fed: Fed) -> Fed:
        keys = [self.expressions.read(e, fed.environment) for e in node.expressions("keys")]
        fields = unmarked(ids_of(node.expressions("keys")), fed, self.facts.marked)
        step = PlanStep(
            node.kind, fields, (("keys", tuple(keys)),), (fed.input,), stateful=fed.streaming
        )
        return Fed(Input(step), fed.environment, fed.streaming)

    def _distinct(self, node: Node, fed: Fed) -> Fed:
        keys = tuple(fed.environment.get(one, nameless(one)) for one in self.columns.outputs(node))
        step = PlanStep("Distinct", (), (("keys", keys),), (fed.input,), stateful=fed.streaming)
        return Fed(Input(step), fed.environment, fed.streaming)

    def _generate(self, node: Node, fed: Fed) -> Fed:
        number = self.number("Generate")
        generator = self.expressions.read(node.raw["generator"], fed.environment)
        environment = dict(fed.environment)
        for at, one in enumerate(node.expressions("generatorOutput")):
            made = output_of("Generate", number, f"output {at}", one[0].get("name"))
            environment[id_of(one)] = self._spelled_out(made, [generator])
        fields = (("outer", json.dumps(node.raw.get("outer"))),)
        step = PlanStep("Generate", fields, (("generator", (generator,)),), (fed.input,))
        return Fed(Input(step), environment, fed.streaming)

    def _expand(self, node: Node, fed: Fed) -> Fed:
        number = self.number("Expand")
        places = self.columns.wanted_places(node, self.columns.needed[id(node)])
        rows = [
            tuple(self.expressions.read(row[at], fed.environment) for at in places)
            for row in node.expressions("projections")
        ]
        attributes = node.expressions("output")
        environment = {}
        expressions: list[tuple[str, tuple[Expression, ...]]] = []
        for column, at in enumerate(places):
            made = [row[column] for row in rows]
            attribute = attributes[at]
            if all(one == made[0] for one in made):  # passed on as it is
                environment[id_of(attribute)] = made[0]
                continue
            reference = output_of(
                "Expand", number, f"column {len(expressions)}", attribute[0].get("name")
            )
            environment[id_of(attribute)] = reference
            expressions.append((f"column {len(expressions)}", tuple(made)))
        fields = (("rows", str(len(rows))),)
        return Fed(
            Input(PlanStep("Expand", fields, tuple(expressions), (fed.input,))),
            environment,
            fed.streaming,
        )

    def _union(self, node: Node) -> Fed:
        number = self.number("Union")
        places = self.columns.wanted_places(node, self.columns.needed[id(node)])
        fed = [self.build(child) for child in node.children]
        expressions = []
        for at, (child, found) in enumerate(zip(node.children, fed, strict=True)):
            theirs = self.columns.outputs(child)
            columns = tuple(found.environment.get(theirs[p], nameless(p)) for p in places)
            expressions.append((f"columns of branch {at}", columns))
        mine = self.columns.outputs(node)
        environment = {
            mine[place]: output_of("Union", number, f"column {at}", expressions[0][1][at])
            for at, place in enumerate(places)
        }
        step = PlanStep("Union", (), tuple(expressions), tuple(one.input for one in fed))
        return Fed(Input(step), environment, any(one.streaming for one in fed))

    def _join(self, node: Node) -> Fed:
        left, right = self.build(node.children[0]), self.build(node.children[1])
        environment = {
            **self._put_out(node.children[0], left),
            **self._put_out(node.children[1], right),
        }
        raw = node.raw.get("condition")
        said = self.expressions.conjuncts(raw, environment) if isinstance(raw, list) else []
        stateful = left.streaming and right.streaming
        expressions: list[tuple[str, tuple[Expression, ...]]] = [
            ("condition", in_order(tuple(said)))
        ]
        if stateful:  # whole rows of both sides lie in the state, by keys in the code's order
            equal = tuple(one for one in said if one.name in ("EqualTo", "EqualNullSafe"))
            expressions.append((KEY_ORDER, equal))
            sides = tuple(
                self._side(*one) for one in zip(node.children, (left, right), strict=True)
            )
            optimized = self.facts.joined
            if optimized is not None and len(self.joins) < len(optimized):
                sides = optimized[len(self.joins)]
            self.joins.append((sides[0], sides[1]))
            expressions += [("left columns", sides[0]), ("right columns", sides[1])]
        kind = node.raw.get("joinType")
        fields: Fields = (("type", json.dumps(simple_name(object_name(kind)))),)
        if stateful and isinstance(raw, list):
            used = references(raw)
            for child, fed in ((node.children[0], left), (node.children[1], right)):
                fields += unmarked(
                    [i for i in self.columns.outputs(child) if i in used], fed, self.facts.marked
                )
        step = PlanStep("Join", fields, tuple(expressions), (left.input, right.input), stateful)
        return Fed(Input(step), environment, left.streaming or right.streaming)

    def _spelled_out(self, column: Expression, made_of: Sequence[Expression]) -> Expression:
        return replace(column, children=tuple(made_of)) if self.spells_out else column

    def _put_out(self, node: Node, fed: Fed) -> dict[int, Expression]:
        return {
            one: fed.environment[one]
            for one in self.columns.outputs(node)
            if one in fed.environment
        }

    def _side(self, side: Node, fed: Fed) -> tuple[Expression, ...]:
        """Return the columns of a join's side."""
        wanted = self.columns.needed[id(side)]
        named = (
            Expression(
                NAMED, (), (fed.environment.get(one, nameless(one)),), self.names.get(one, "")
            )
            for one in self.columns.outputs(side)
            if one in wanted
        )
        return tuple(named)

    def _other(self, node: Node, fed: list[Fed]) -> Fed:
        """Read any other step: all its fields, and all columns of its inputs."""
        number = self.number(node.kind)
        environment: dict[int, Expression] = {}
        for child, one in zip(node.children, fed, strict=True):
            environment.update(self._put_out(child, one))
        names = {"output", "outAttrs", "outputAttrs", "resultAttributes"}
        expressions: list[tuple[str, tuple[Expression, ...]]] = []
        for name, value in node.raw.items():
            if name not in names and is_expressions(value):
                found = value if is_nested(value) else [value]
                expressions.append(
                    (name, tuple(self.expressions.read(e, environment) for e in found))
                )
        streaming = any(one.streaming for one in fed)
        # A limit over sorted rows limits a complete result, and keeps no count.
        limits = node.kind == "GlobalLimit" and not any(
            one.kind == "Sort" for below in fed for one in below.input.step.walk()
        )
        stateful = streaming and ("WithState" in node.kind or limits)
        names_seen: list[tuple[str, str]] = []  # a function takes its columns by their names
        if "WithState" in node.kind or node.kind.startswith(("MapIn", "FlatMap", "MapPartitions")):
            for at, (child, one) in enumerate(zip(node.children, fed, strict=True)):
                columns = (one.environment.get(i, nameless(i)) for i in self.columns.outputs(child))
                expressions.append((f"columns {at}" if at else "columns", tuple(columns)))
                seen = [self.names.get(i) for i in self.columns.outputs(child)]
                names_seen.append((f"names {at}" if at else "names", json.dumps(seen)))
        made = dict(environment)
        fresh = [one for one in self.columns.outputs(node) if one not in environment]
        for at, one_id in enumerate(fresh):
            column = output_of(node.kind, number, f"output {at}", None)
            made[one_id] = self._spelled_out(column, [e for _, all_ in expressions for e in all_])
        skipped = {name for name, value in node.raw.items() if is_expressions(value)}
        fields = self.expressions.fields(node.kind, node.raw, (*names, *skipped))
        extra = as_fields(self.facts.details.get(node.place, {}))
        step = PlanStep(
            node.kind,
            (*fields, *extra, *names_seen),
            tuple(expressions),
            tuple(one.input for one in fed),
            stateful,
        )
        return Fed(Input(step), made, streaming)


_SINGLE = {
    "Project": _JsonReader._project,
    "Filter": _JsonReader._filter,
    "Aggregate": _JsonReader._aggregate,
    "Deduplicate": _JsonReader._deduplicate,
    "DeduplicateWithinWatermark": _JsonReader._deduplicate,
    "Distinct": _JsonReader._distinct,
    "Generate": _JsonReader._generate,
    "Expand": _JsonReader._expand,
    **dict.fromkeys(WATERMARKS, _JsonReader._watermark),
}


def _lacks_its_fields(node: Node) -> bool:
    """Whether Spark's JSON leaves out what the step does; then its own text stands for it."""
    return node.kind == "Expand" and not node.expressions("projections")


def _is_true(condition: Expression) -> bool:
    return condition.name == LITERAL and condition.field("value") == '"true"'
