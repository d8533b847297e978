"""Reads Spark's JSON of a plan: classes, numbers of columns, values. Pure.

A node is an object with its class, the number of its children and a field for each argument. An
expression is a flat list of such objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.checkpoint.plan.tree import Fields

# Numbers and places that differ in each plan, and fields that say nothing about rows.
VOLATILE = frozenset(
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
# Fields that the JSON leaves out, and that are known by other means or have no meaning.
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


WATERMARK_DELAY = "spark.watermarkDelayMs"
"""In the metadata of a column with a watermark."""
_COLLATIONS = "__COLLATIONS"
"""Spark writes a struct field's collations beside its type, not in it."""


def simple_name(name: object) -> str:
    return str(name).rsplit(".", 1)[-1].rstrip("$").rsplit("$", 1)[-1]


def is_expressions(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    return (isinstance(first, dict) and "class" in first) or is_expressions(first)


def is_nested(value: list[Any]) -> bool:
    return isinstance(value[0], list)


def id_of(flat: Any) -> int:
    return expression_id(flat[0])


def ids_of(found: list[Any]) -> list[int]:
    return [id_of(one) for one in found]


def expression_id(raw: Mapping[str, Any]) -> int:
    found = raw.get("exprId")
    return int(found["id"]) if isinstance(found, Mapping) else -1


def result_id(raw: Mapping[str, Any]) -> int:
    found = raw.get("resultId")
    return int(found["id"]) if isinstance(found, Mapping) else -1


def references(value: Any) -> set[int]:
    """Return the numbers of all columns that the value mentions at any depth."""
    return {
        expression_id(one)
        for one in _objects(value)
        if simple_name(one.get("class", "")) == "AttributeReference"
    }


def names_of(value: Any) -> dict[int, str]:
    """Return the name that the code gives each column, by its number."""
    return {
        expression_id(one): str(one["name"])
        for one in _objects(value)
        if "exprId" in one and one.get("name")
    }


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every JSON object at any depth, without the numbers of columns."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, Mapping):
            yield one
            waiting.extend(value for key, value in one.items() if key != "exprId")


def plain(value: Any) -> Any:
    """Return the value without Spark's packages and without the numbers that differ in each
    plan.
    """
    if isinstance(value, Mapping):
        if "object" in value:
            return simple_name(value["object"])
        kept = {k: plain(v) for k, v in value.items() if k not in ("jvmId", "exprId", "metadata")}
        metadata = value.get("metadata")
        if isinstance(metadata, Mapping) and _COLLATIONS in metadata:
            kept[_COLLATIONS] = metadata[_COLLATIONS]
        return {
            k: v
            for k, v in kept.items()
            if k not in ("nullable", "containsNull", "valueContainsNull")
        }
    return [plain(one) for one in value] if isinstance(value, list) else value


def type_json(value: Any) -> str:
    return json.dumps(plain(value), sort_keys=True)


def object_name(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("object") or value.get("product-class") or "")
    return str(value)


def as_fields(details: Mapping[str, Any]) -> Fields:
    return tuple(sorted((str(key), json.dumps(value)) for key, value in details.items()))
