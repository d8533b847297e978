"""The steps of an analysed plan, read from the JVM as plain data.

Expressions are taken as SQL, which has no expression ids, so that the plans of two
starts can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from floodmark.checkpoint.outline import PlanNode

_IDS = re.compile(r"#\d+L?")
_DELAY = "spark.watermarkDelayMs"
_NAMELESS = ("SubqueryAlias", "View", "ResolvedHint")


def plan_nodes(plan: Any) -> tuple[PlanNode, ...]:
    """Nearest the sink first, as Spark numbers stateful operators."""
    found: list[PlanNode] = []
    _walk(plan, found)
    return tuple(found)


def _walk(node: Any, found: list[PlanNode]) -> None:
    kind = str(node.getClass().getSimpleName()).rstrip("$")
    children = sequence(node.children())
    if children and kind not in _NAMELESS:
        found.append(PlanNode(kind, _details(kind, node), bool(node.isStreaming())))
    for child in children:
        _walk(child, found)


def _details(kind: str, node: Any) -> dict[str, Any]:
    read = _READERS.get(kind)
    if read is not None:
        return read(node)
    if "WithState" in kind:
        return _with_state(node)
    return {"text": plain(str(node.simpleString(1000)))}


def _filter(node: Any) -> dict[str, Any]:
    return {"condition": sql(node.condition())}


def _project(node: Any) -> dict[str, Any]:
    return {"columns": [sql(one) for one in sequence(node.projectList())]}


def _aggregate(node: Any) -> dict[str, Any]:
    return {
        "grouping": [sql(one) for one in sequence(node.groupingExpressions())],
        "aggregates": [sql(one) for one in sequence(node.aggregateExpressions())],
        "functions": _functions(node),
    }


def _functions(node: Any) -> list[str]:
    """What the state keeps, in its order: an expression around them keeps nothing."""
    found: dict[str, None] = {}

    def walk(expression: Any) -> None:
        if str(expression.getClass().getSimpleName()) in ("AggregateExpression", "PythonUDAF"):
            found[sql(expression)] = None
            return
        for child in sequence(expression.children()):
            walk(child)

    for one in sequence(node.aggregateExpressions()):
        walk(one)
    return list(found)


def _watermark(node: Any) -> dict[str, Any]:
    column = str(node.eventTime().name())
    for attribute in sequence(node.output()):
        metadata = attribute.metadata()
        if str(attribute.name()) == column and metadata.contains(_DELAY):
            return {"column": column, "delay_ms": int(metadata.getLong(_DELAY))}
    return {"column": column}


def _join(node: Any) -> dict[str, Any]:
    condition = node.condition()
    return {
        "type": str(node.joinType().toString()),
        "condition": sql(condition.get()) if condition.isDefined() else None,
        "streams": bool(node.left().isStreaming()) and bool(node.right().isStreaming()),
    }


def _deduplicate(node: Any) -> dict[str, Any]:
    return {"columns": [str(one.name()) for one in sequence(node.keys())]}


def _limit(node: Any) -> dict[str, Any]:
    return {"limit": sql(node.limitExpr())}


def _with_state(node: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("groupingAttributes", "groupingExpressions"):
        columns = _asked(node, name)
        if columns is not None:
            found["grouping"] = [str(one.name()) for one in sequence(columns)]
    for name, key in (
        ("timeout", "timeout"),
        ("timeMode", "time_mode"),
        ("outputMode", "output_mode"),
    ):
        value = _asked(node, name)
        if value is not None:
            found[key] = str(value.toString())
    state = _asked(node, "stateType")
    if state is not None:
        found["state"] = str(state.simpleString())
    return found


def _asked(node: Any, name: str) -> Any:
    from py4j.protocol import Py4JError

    try:
        return getattr(node, name)()
    except (Py4JError, TypeError):
        return None


_READERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "Filter": _filter,
    "Project": _project,
    "Aggregate": _aggregate,
    "EventTimeWatermark": _watermark,
    "UpdateEventTimeWatermarkColumn": _watermark,
    "Join": _join,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "GlobalLimit": _limit,
    "LocalLimit": _limit,
}


def sql(expression: Any) -> str:
    from py4j.protocol import Py4JError

    try:
        return plain(str(expression.sql()))
    except Py4JError:  # not every expression can be said in SQL
        return plain(str(expression.toString()))


def plain(text: str) -> str:
    return _IDS.sub("", text)


def sequence(items: Any) -> list[Any]:
    return [items.apply(index) for index in range(items.size())]
