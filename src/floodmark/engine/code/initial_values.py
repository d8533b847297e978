"""Asks Spark's functions for the values that a new key's aggregates start from."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from floodmark.engine.spark.scala import jvm_field

Initial = tuple[tuple[Any, ...], ...]
"""A tuple of values, as JSON data, for each aggregate function."""


def initial_values(writer: Any) -> tuple[Initial, ...]:
    """Return the functions' initial values for each streaming aggregation, last operator first."""
    plan = jvm_field(writer._jwrite, "ds").queryExecution().analyzed()
    # Spark replaces some functions, such as count_if, by others: those keep the state.
    plan = writer._spark._jvm.org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions.apply(plan)
    found: list[Initial] = []
    for node in _nodes(plan):
        if _class(node) == "Aggregate" and node.isStreaming():
            functions = _functions(_items(node.aggregateExpressions()))
            found.append(tuple(_values(writer._spark, one) for one in functions))
    return tuple(found)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in _items(node.children()):
        yield from _nodes(child)


def _functions(expressions: list[Any]) -> list[Any]:
    """Return each aggregate function once, in the planner's order."""
    found: dict[str, Any] = {}
    for expression in expressions:
        for node in _nodes(expression):
            if _class(node) == "AggregateExpression":
                canonical = str(node.canonicalized().toString())
                found.setdefault(canonical, node.aggregateFunction())
    return list(found.values())


def _values(spark: Any, function: Any) -> tuple[Any, ...]:
    jvm = spark._jvm
    types = [attribute.dataType() for attribute in _items(function.aggBufferAttributes())]
    if _is(function, "DeclarativeAggregate"):
        values = [one.eval(None) for one in _items(function.initialValues())]
    elif _is(function, "TypedImperativeAggregate"):
        values = [function.serialize(function.createAggregationBuffer())]
    else:
        row = jvm.org.apache.spark.sql.catalyst.expressions.SpecificInternalRow(
            function.aggBufferSchema()
        )
        function.initialize(row)
        values = [row.get(at, kind) for at, kind in enumerate(types)]
    return tuple(_plain(value) for value in values)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(bytes(value)).decode()
    return str(value)  # a decimal, a string of Spark's own


def _is(function: Any, name: str) -> bool:
    kind = function.getClass()
    while kind is not None:
        if str(kind.getSimpleName()) == name:
            return True
        kind = kind.getSuperclass()
    return False


def _class(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _items(found: Any) -> list[Any]:
    return [found.apply(at) for at in range(found.size())]
