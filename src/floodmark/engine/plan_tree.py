"""The plan of a query, read from the JVM as a tree that can be compared.

One call gives Spark's JSON of the whole plan. The few things that it leaves out (a
watermark's delay, a static table's folder or rows, the bodies of Python functions) are asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.checkpoint.plan_json import KNOWN_BY_OTHER_MEANS, expression_id
from floodmark.checkpoint.plan_reading import Facts, read_plan
from floodmark.checkpoint.plan_tree import Input, PlanTree, Step
from floodmark.engine.python_code import function_digest
from floodmark.engine.static_rows import KINDS as GIVEN_ROWS
from floodmark.engine.static_rows import rows_digest

_DEEPEST = 20_000
_DELAY = "spark.watermarkDelayMs"
_MOST_FIELDS = "spark.sql.debug.maxToStringFields"
_SUBQUERIES = ("ScalarSubquery", "ListQuery", "Exists", "LateralSubquery")
_ADDRESS = re.compile(r"@[0-9a-f]+")
_NODE_ID = re.compile(r"(EventTimeWatermark )[0-9a-f-]{36}")
_TRY = re.compile(r"\btry_\w+(?=\()")
_MAY_TRY = re.compile(r'"(?:evalMode|evalContext)"')
_NUMBERS = re.compile(r'"(?:jvmId|nodeId)":"[^"]*",?')


def read_tree(spark: Any, plan: Any) -> PlanTree:
    # A column made in hundreds of steps is an expression of hundreds of levels.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))
    text = str(plan.toJSON())
    nodes = json.loads(text)
    _fill(plan, nodes)
    with _whole_texts(spark):
        facts = _facts(spark, plan, text, nodes)
    try:
        return read_plan(nodes, facts)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # A form that no Spark had when this was written: not read, and never called the same.
        unread = Step("Unread", (("why", repr(error)),), stateful=True)
        return PlanTree(Input(unread), (), facts.canonical, facts.tries, ("the plan",))


def _facts(spark: Any, plan: Any, text: str, nodes: list[Mapping[str, Any]]) -> Facts:
    wanted = {at: kind for at, node in enumerate(nodes) if (kind := _asks(node)) is not None}
    details: dict[int, Mapping[str, Any]] = {}
    functions: dict[int, str] = {}
    if wanted:
        for at, node in enumerate(_nodes(plan)):
            if at not in wanted:
                continue
            if wanted[at] == "watermark":
                details[at] = {"delay_ms": _delay(node)}
            elif wanted[at] == "static":
                details[at] = _static(node)
            elif wanted[at] == "rows":
                details[at] = {"rows": rows_digest(node)}
            elif wanted[at] == "line":
                details[at] = {"line": str(node.canonicalized().simpleString(1_000_000))}
            else:
                functions.update(_functions(node))
    canonical = plan.canonicalized()
    words = _NODE_ID.sub(r"\1", str(canonical.toString()))
    whole = _NUMBERS.sub("", str(canonical.toJSON())) + words
    tries = tuple(_TRY.findall(words)) if "try_" in words else ()
    return Facts(details, functions, hashlib.sha256(whole.encode()).hexdigest(), tries)


def _fill(plan: Any, nodes: list[dict[str, Any]]) -> None:
    """What the JSON does not tell of expressions: asked for where a node has such a one."""
    tries = "try_" in str(plan.toString()) if _MAY_TRY.search(json.dumps(nodes)) else False
    wanted = {
        at
        for at, node in enumerate(nodes)
        if any(_is_half_told(one, tries) for one in _expressions(node))
    }
    if not wanted:
        return
    for at, node in enumerate(_nodes(plan)):
        if at not in wanted:
            continue
        mine = [one for top in sequence(node.expressions()) for one in _nodes(top)]
        told = list(_expressions(nodes[at]))
        if len(mine) != len(told):
            continue  # what is left out then counts as not seen
        for raw, expression in zip(told, mine, strict=True):
            if _is_half_told(raw, tries):
                _tell(raw, expression)


def _is_half_told(raw: Mapping[str, Any], tries: bool) -> bool:
    return (
        raw.get("options", "") is None
        or str(raw.get("value")).startswith("[B@")
        or isinstance(raw.get("plan"), list)
        or (tries and ("evalMode" in raw or "evalContext" in raw))
    )


def _tell(raw: dict[str, Any], expression: Any) -> None:
    if raw.get("options", "") is None:  # of from_json and its like
        raw["options"] = scala_map(expression.options())
    if str(raw.get("value")).startswith("[B@"):
        raw["value"] = bytes(expression.value()).hex()
    for name in ("evalMode", "evalContext"):
        if name in raw and raw[name] is None and "TRY" in str(getattr(expression, name)()):
            raw[name] = "TRY"
    if isinstance(raw.get("plan"), list):
        _tell_subquery(raw["plan"], expression.plan())


def _tell_subquery(nodes: list[dict[str, Any]], plan: Any) -> None:
    _fill(plan, nodes)
    _number(nodes, {})
    for raw, node in zip(nodes, _nodes(plan), strict=False):
        asked = _asks(raw)
        if asked == "static":
            raw.update(_static(node))
        elif asked == "rows":
            raw["rows"] = rows_digest(node)
        if raw["class"].endswith(".View"):  # with the time at which it was made
            raw.pop("desc", None)
            raw.pop("options", None)


def _number(value: Any, places: dict[int, int]) -> None:
    """Columns of a subquery by their order, as Spark's numbers are others in each session."""
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
    """Of a plan's node, in the order in which Spark walks them."""
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


def scala_map(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    pairs = value.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1()).lower()] = str(pair._2())
    return found


def _asks(node: Mapping[str, Any]) -> str | None:
    kind = str(node["class"]).rsplit(".", 1)[-1]
    if kind in ("EventTimeWatermark", "UpdateEventTimeWatermarkColumn"):
        return "watermark"
    if kind in ("LogicalRelation", "DataSourceV2Relation"):
        return "static"
    if kind in GIVEN_ROWS and node.get("isStreaming") is not True:
        return "rows"
    if '"class": "org.apache.spark.sql.catalyst.expressions.Python' in json.dumps(node):
        return "functions"
    hidden = {name for name, value in node.items() if value is None} - KNOWN_BY_OTHER_MEANS
    return "line" if hidden and int(node["num-children"]) else None


def _nodes(node: Any) -> Iterator[Any]:
    """As the JSON lists them: each before its children."""
    yield node
    for child in sequence(node.children()):
        yield from _nodes(child)


def _delay(node: Any) -> int | None:
    column = str(node.eventTime().name())
    for attribute in sequence(node.output()):
        metadata = attribute.metadata()
        if str(attribute.name()) == column and metadata.contains(_DELAY):
            return int(metadata.getLong(_DELAY))
    return None


def _static(leaf: Any) -> dict[str, Any]:
    from py4j.protocol import Py4JError

    try:
        relation = leaf.relation()
        paths = [str(one.toString()) for one in sequence(relation.location().rootPaths())]
        return {"reads": paths, "format": _format(relation)}
    except (Py4JError, TypeError):
        text = str(leaf.simpleString(1_000_000))
        return {"reads": text.partition("[")[0], "format": _told_by(leaf, text.partition("]")[2])}


def _told_by(leaf: Any, words: str) -> str:
    """A table of a database or a connector: by what stands after its columns.

    A digest, as a query may hold what nobody should see.
    """
    return hashlib.sha256(_ADDRESS.sub("", words).encode()).hexdigest()


def _format(relation: Any) -> str:
    """How files are read; a digest, as options may hold what nobody should see."""
    kind = str(relation.fileFormat().getClass().getSimpleName())
    options = {key: value for key, value in scala_map(relation.options()).items() if key != "path"}
    # Columns of these files go by their place, those of others by their name.
    columns = str(relation.dataSchema().simpleString()) if "CSV" in kind else ""
    told = json.dumps([kind, options, columns], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _functions(node: Any) -> dict[int, str]:
    found: dict[int, str] = {}
    for expression in sequence(node.expressions()):
        for one in _nodes(expression):
            if str(one.getClass().getSimpleName()) in ("PythonUDF", "PythonUDAF", "PythonUDTF"):
                found[int(one.resultId().id())] = _python_function(one.func())
            elif str(one.getClass().getSimpleName()) in _SUBQUERIES:
                for below in _nodes(one.plan()):
                    found.update(_functions(below))
    return found


def _python_function(function: Any) -> str:
    from py4j.protocol import Py4JError

    try:
        command = _bytes(function.command())
    except (Py4JError, TypeError):
        return f"not to be had: {uuid.uuid4()}"  # equal to nothing: it is never called the same
    try:
        from pyspark import cloudpickle

        # This process pickled it a moment ago: it is the code that is about to run.
        value = cloudpickle.loads(command)  # nosec B301
    except Exception:
        return hashlib.sha256(command).hexdigest()
    return function_digest(value[0] if isinstance(value, tuple) and value else value)


def _bytes(command: Any) -> bytes:
    """Scala's wrapper around a byte[] has another name for it in Scala 2.12, with Spark 3."""
    from py4j.protocol import Py4JError

    if isinstance(command, (bytes, bytearray)):
        return bytes(command)
    try:
        return bytes(command.unsafeArray())
    except Py4JError:
        return bytes(command.array())


def sequence(items: Any) -> list[Any]:
    return [items.apply(index) for index in range(items.size())]


@contextlib.contextmanager
def _whole_texts(spark: Any) -> Iterator[None]:
    """Spark cuts its texts after 25 columns; what is compared must be whole."""
    before = spark.conf.get(_MOST_FIELDS, None)
    spark.conf.set(_MOST_FIELDS, "1000000")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_MOST_FIELDS)
        else:
            spark.conf.set(_MOST_FIELDS, before)
