"""Reads the plan of a query from the JVM as a tree that can be compared.

One call gives Spark's JSON of the whole plan. The module then asks Spark for the few things
that the JSON leaves out: a watermark's delay, a static table's folder or rows, Python functions.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.checkpoint.plan.reading import Facts, JoinedColumns, read_joins, read_plan
from floodmark.checkpoint.plan.spark_json import (
    KNOWN_BY_OTHER_MEANS,
    VOLATILE,
    WATERMARK_DELAY,
    expression_id,
    result_id,
)
from floodmark.checkpoint.plan.tree import Input, PlanStep, PlanTree
from floodmark.engine.code.digests.pickled_code import python_digest
from floodmark.engine.code.digests.static_rows import KINDS as GIVEN_ROWS
from floodmark.engine.code.digests.static_rows import rows_digest
from floodmark.engine.code.digests.static_tables import KINDS as TABLES
from floodmark.engine.code.digests.static_tables import UNTOLD, source_facts, static_facts
from floodmark.engine.spark.scala import scala_map, sequence

_DEEPEST = 20_000
_MOST_FIELDS = "spark.sql.debug.maxToStringFields"
_PANDAS_OR_ROWS = "userFacingDataType"
_SUBQUERIES = ("ScalarSubquery", "ListQuery", "Exists", "LateralSubquery")
_NODE_ID = re.compile(r"(EventTimeWatermark )[0-9a-f-]{36}")
_TRY = re.compile(r"\btry_\w+(?=\()")
_MAY_TRY = re.compile(r'"(?:evalMode|evalContext)"')
_OF_A_SESSION = re.compile(r"@[0-9a-f]{3,}|#\d|\$Lambda|[0-9a-f]{8}-[0-9a-f]{4}-")
_TAKES_FIELD = re.compile(r"\.(?:GetStructField|GetArrayStructFields)\b")
_MARKED = re.compile(r"#(\d+)L?-T\d+ms")
_NUMBERS = re.compile(r'"(?:jvmId|nodeId)":"[^"]*",?')


def read_tree(spark: Any, plan: Any) -> PlanTree:
    # A column that was made in hundreds of steps is an expression hundreds of levels deep.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))
    nodes = json.loads(str(plan.toJSON()))
    _fill(plan, nodes)
    with _whole_texts(spark):
        facts = _facts(spark, plan, nodes)
    try:
        return read_plan(nodes, facts)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # No Spark had this form when this was written: an unread plan never counts as the same.
        unread = PlanStep("Unread", (("why", repr(error)),), stateful=True)
        return PlanTree(Input(unread), (), facts.canonical, facts.tries, ("the plan",))


def _facts(spark: Any, plan: Any, nodes: list[Mapping[str, Any]]) -> Facts:
    wanted = {at: kind for at, node in enumerate(nodes) if (kind := _asks(node)) is not None}
    details: dict[int, Mapping[str, Any]] = {}
    functions: dict[int, str] = {}
    if wanted:
        for at, node in enumerate(_nodes(plan)):
            if at not in wanted:
                continue
            if wanted[at] == "watermark":
                details[at] = {"delay_ms": _delay(node)}
            elif wanted[at] == "source":
                details[at] = source_facts(node)
            elif wanted[at] == "static":
                details[at] = static_facts(node)
            elif wanted[at] == "rows":
                details[at] = _rows(node)
            elif wanted[at] == "line":
                details[at] = {"line": str(node.canonicalized().simpleString(1_000_000))}
            else:
                functions.update(_functions(node))
    canonical = plan.canonicalized()
    words = _NODE_ID.sub(r"\1", str(canonical.toString()))
    whole = _NUMBERS.sub("", str(canonical.toJSON())) + words
    tries = tuple(_TRY.findall(words)) if "try_" in words else ()
    untold = tuple(str(one[UNTOLD]) for one in details.values() if UNTOLD in one)
    arranged, nested = _are_arranged(nodes), _may_lose_fields(nodes)
    optimized = _optimized(spark, plan) if arranged or nested else []
    if optimized is None:
        untold, optimized = (*untold, "what Spark's optimizer makes of the plan"), []
        nested = False
    ranks = _ranks(optimized) if arranged else {}
    joined = _joined(optimized, functions) if nested else None
    if nested and joined is None:
        untold = (*untold, "the columns of a join")
    digest = hashlib.sha256(whole.encode()).hexdigest()
    marked = _marked(plan) if "watermark" in wanted.values() else frozenset()
    return Facts(details, functions, digest, tries, untold, marked, ranks, joined)


def _marked(plan: Any) -> frozenset[int]:
    """Spark's JSON has no metadata; its text has the watermark's delay behind each column."""
    return frozenset(map(int, _MARKED.findall(str(plan.toString()))))


def _are_arranged(nodes: list[Mapping[str, Any]]) -> bool:
    """Whether a `select` stands above several aggregates; in the list, parents come first."""
    has_project = False
    for node in nodes:
        kind = str(node["class"]).rsplit(".", 1)[-1]
        has_project = has_project or kind == "Project"
        if has_project and kind == "Aggregate" and len(_results(node)) > 1:
            return True
    return False


def _results(node: Mapping[str, Any]) -> list[int]:
    """Return the numbers of a node's aggregates, in its order."""
    every = [raw for one in node["aggregateExpressions"] for raw in one]
    return [result_id(raw) for raw in every if str(raw["class"]).endswith(".AggregateExpression")]


def _may_lose_fields(nodes: list[Mapping[str, Any]]) -> bool:
    """Whether a join has structs among its columns: the optimizer may keep some fields of them."""
    has_join = any(str(node["class"]).endswith(".Join") for node in nodes)
    return has_join and _TAKES_FIELD.search(json.dumps(nodes)) is not None


def _optimized(spark: Any, plan: Any) -> list[Mapping[str, Any]] | None:
    """Return the plan after Spark's optimizer; None where Spark does not say."""
    from py4j.protocol import Py4JError

    try:
        optimizer = spark._jsparkSession.sessionState().optimizer()
        found: list[Mapping[str, Any]] = json.loads(str(optimizer.execute(plan).toJSON()))
    except (Py4JError, ValueError):
        return None
    return found


def _ranks(optimized: list[Mapping[str, Any]]) -> dict[int, int]:
    """Return the order of the aggregates, by the numbers of their results."""
    found = [_results(one) for one in optimized if str(one["class"]).endswith(".Aggregate")]
    return {number: at for results in found for at, number in enumerate(results)}


def _joined(
    optimized: list[Mapping[str, Any]], functions: Mapping[int, str]
) -> tuple[JoinedColumns, ...] | None:
    try:
        return read_joins(optimized, Facts(functions=functions))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _rows(leaf: Any) -> dict[str, Any]:
    found = rows_digest(leaf)
    return {"rows": found, **({} if found else {UNTOLD: "the rows that a job makes"})}


def _fill(plan: Any, nodes: list[dict[str, Any]]) -> None:
    """Fill in what the JSON leaves out, mostly of expressions, by asking Spark."""
    tries = "try_" in str(plan.toString()) if _MAY_TRY.search(json.dumps(nodes)) else False
    wanted = {
        at
        for at, node in enumerate(nodes)
        if _PANDAS_OR_ROWS in node or any(_is_half_told(one, tries) for one in _expressions(node))
    }
    if not wanted:
        return
    for at, node in enumerate(_nodes(plan)):
        if at not in wanted:
            continue
        if _PANDAS_OR_ROWS in nodes[at]:
            nodes[at][_PANDAS_OR_ROWS] = _text(node, _PANDAS_OR_ROWS)
        mine = [one for top in sequence(node.expressions()) for one in _nodes(top)]
        told = list(_expressions(nodes[at]))
        if len(mine) != len(told):
            continue  # the parts that are left out then count as not seen
        for raw, expression in zip(told, mine, strict=True):
            if _is_half_told(raw, tries):
                _tell(raw, expression)


def _is_half_told(raw: Mapping[str, Any], tries: bool) -> bool:
    return (
        bool(_hidden(raw))
        or str(raw.get("value")).startswith("[B@")
        or isinstance(raw.get("plan"), list)
        or (tries and ("evalMode" in raw or "evalContext" in raw))
    )


def _tell(raw: dict[str, Any], expression: Any) -> None:
    for name in _hidden(raw):
        raw[name] = _text(expression, name)
    if str(raw.get("value")).startswith("[B@"):
        raw["value"] = bytes(expression.value()).hex()
    for name in ("evalMode", "evalContext"):
        if name in raw and raw[name] is None and "TRY" in str(getattr(expression, name)()):
            raw[name] = "TRY"
    if isinstance(raw.get("plan"), list):
        _tell_subquery(raw["plan"], expression.plan())


def _hidden(raw: Mapping[str, Any]) -> list[str]:
    """Return the fields that Spark's JSON leaves empty: options of from_json, Protobuf's schema."""
    if str(raw.get("class")).endswith(".Literal"):
        return []
    known = VOLATILE | KNOWN_BY_OTHER_MEANS
    return [name for name, value in raw.items() if value is None and name not in known]


def _text(expression: Any, name: str) -> Any:
    """Return a field's text; None where it has no text, or one that differs in each session."""
    from py4j.protocol import Py4JError

    try:
        value = getattr(expression, name)()
        if name == "options":
            return scala_map(value)
        if str(getattr(value, "getClass", lambda: "")()).endswith("scala.Some"):
            value = value.get()
    except (Py4JError, TypeError):
        return None
    if isinstance(value, (bytes, bytearray)):
        return hashlib.sha256(value).hexdigest()
    text = str(value.toString() if hasattr(value, "toString") else value)
    return None if _OF_A_SESSION.search(text) else text


def _tell_subquery(nodes: list[dict[str, Any]], plan: Any) -> None:
    _fill(plan, nodes)
    _number(nodes, {})
    for raw, node in zip(nodes, _nodes(plan), strict=False):
        asked = _asks(raw)
        if asked == "static":
            raw.update(static_facts(node))
        elif asked == "rows":
            raw.update(_rows(node))
        if raw["class"].endswith(".View"):  # with the time at which it was made
            raw.pop("desc", None)
            raw.pop("options", None)


def _number(value: Any, places: dict[int, int]) -> None:
    """Number a subquery's columns in their order: Spark's numbers differ in each session."""
    if isinstance(value, list):
        for one in value:
            _number(one, places)
    elif isinstance(value, dict):
        if str(value.get("class", "")).endswith(".AttributeReference"):
            number = expression_id(value)
            value["place"] = places.setdefault(number, len(places))
        for one in value.values():
            _number(one, places)


def _expressions(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the expressions of a plan's node, in the order in which Spark walks them."""
    if isinstance(value, dict):
        for inner in value.values():
            if isinstance(inner, list):
                yield from _listed(inner)


def _listed(found: list[Any]) -> Iterator[dict[str, Any]]:
    for one in found:
        if isinstance(one, list):
            yield from _listed(one)
        elif isinstance(one, dict) and "class" in one:
            yield one


def _asks(node: Mapping[str, Any]) -> str | None:
    kind = str(node["class"]).rsplit(".", 1)[-1]
    if kind in ("EventTimeWatermark", "UpdateEventTimeWatermarkColumn"):
        return "watermark"
    if kind in TABLES:
        return "static"
    if kind == "StreamingRelationV2":
        return "source"
    if kind in GIVEN_ROWS and node.get("isStreaming") is not True:
        return "rows"
    if '"class": "org.apache.spark.sql.catalyst.expressions.Python' in json.dumps(node):
        return "functions"
    hidden = {name for name, value in node.items() if value is None} - KNOWN_BY_OTHER_MEANS
    return "line" if hidden and int(node["num-children"]) else None


def _nodes(node: Any) -> Iterator[Any]:
    """Yield the nodes in the order of the JSON: each before its children."""
    yield node
    for child in sequence(node.children()):
        yield from _nodes(child)


def _delay(node: Any) -> int | None:
    column = str(node.eventTime().name())
    for attribute in sequence(node.output()):
        metadata = attribute.metadata()
        if str(attribute.name()) == column and metadata.contains(WATERMARK_DELAY):
            return int(metadata.getLong(WATERMARK_DELAY))
    return None


def _functions(node: Any) -> dict[int, str]:
    found: dict[int, str] = {}
    for expression in sequence(node.expressions()):
        for one in _nodes(expression):
            if str(one.getClass().getSimpleName()) in ("PythonUDF", "PythonUDAF", "PythonUDTF"):
                by_name = any(
                    str(below.getClass().getSimpleName()) == "NamedArgumentExpression"
                    for below in sequence(one.children())
                )
                found[int(one.resultId().id())] = python_digest(one.func(), by_name)
            elif str(one.getClass().getSimpleName()) in _SUBQUERIES:
                for below in _nodes(one.plan()):
                    found.update(_functions(below))
    return found


@contextlib.contextmanager
def _whole_texts(spark: Any) -> Iterator[None]:
    """Let Spark print all columns of a node; by default it cuts its texts after 25."""
    before = spark.conf.get(_MOST_FIELDS, None)
    spark.conf.set(_MOST_FIELDS, "1000000")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_MOST_FIELDS)
        else:
            spark.conf.set(_MOST_FIELDS, before)
