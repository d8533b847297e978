"""Reads the target of a state rewrite from JSON that anybody may have written.

Every field is checked for its allowed values. The first rows show whether the target fits the old
state (`preflight.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.checkpoint.relative_path import is_name, shown
from floodmark.errors import MalformedFile
from floodmark.state.files.compression import CODECS
from floodmark.state.shapes.operators import Shape
from floodmark.state.shapes.reshape import KEY, VALUE, Column, Recipe
from floodmark.statestore.rewrite.target import MOST_PARTITIONS, Part, StateTarget
from floodmark.statestore.write import HDFS, ROCKSDB

Check = Callable[[Any], bool]
_MOST_NUMBER = 2**62
_MOST_ID = 2**15
_UNIQUE_ID = re.compile(r"[0-9A-Za-z-]{1,100}")
_SHAPES = frozenset(shape.value for shape in Shape if shape is not Shape.JOIN)


def target_from_json(value: Any) -> StateTarget:
    given = _object(value, StateTarget, _TARGET, "the new state")
    parts = tuple(_part(part) for part in given["parts"])
    ids = given.get("unique_ids")
    unique = tuple(tuple(stores) for stores in ids) if ids is not None else None
    target = StateTarget(**{**given, "parts": parts, "unique_ids": unique})
    _require_whole(target)
    return target


def recipe_from_json(value: Any) -> Recipe:
    given = _object(value, Recipe, _RECIPE, "a recipe")
    return Recipe(
        tuple(_column(item) for item in given["key"]),
        tuple(_column(item) for item in given["value"]),
        given.get("merge"),
    )


def _part(value: Any) -> Part:
    given = _object(value, Part, _PART, "a part of the new state")
    recipe = given.get("recipe")
    part = Part(**{**given, "recipe": recipe_from_json(recipe) if recipe is not None else None})
    if not part.kept:
        schema = part.reading.schema
        assert schema is not None
        _ = schema.key, schema.value, schema.encoding  # each raises if it is not a schema
    return part


def _column(value: Any) -> Column:
    given = _object(value, Column, _COLUMN, "a column")
    inner = tuple(_column(item) for item in given.get("inner", ()))
    return Column(given["name"], tuple(given.get("source", ())), given.get("fill"), inner)


def _require_whole(target: StateTarget) -> None:
    kept = [part.kept for part in target.parts]
    _need(all(kept) or not any(kept), "some parts keep their rows, and some do not")
    _need(
        not any(kept) or target.from_operator is not None, "rows are kept, but no operator is given"
    )
    _need(any(kept) or target.numbers is None, "`numbers` is for rows that are kept")
    if target.unique_ids is not None:
        _need(target.provider == ROCKSDB, "only RocksDB's files have unique ids")
        _need(len(target.unique_ids) == target.partitions, "a partition has no unique id")
        of_join = all(store in JOIN_STORES for store in target.stores)
        for ids in target.unique_ids:
            _need(len(ids) == 1 or (of_join and len(ids) == len(JOIN_STORES)), "a store has no id")


def _object(value: Any, kind: type[Any], checks: Mapping[str, Check], where: str) -> dict[str, Any]:
    _need(isinstance(value, dict), f"{where} is not an object")
    needed = {
        one.name
        for one in fields(kind)
        if one.default is MISSING and one.default_factory is MISSING
    }
    missing = sorted(needed - value.keys())
    _need(not missing, f"{where} has no {', '.join(missing)}")
    for name, given in value.items():
        _need(name in checks, f"{where} has an unknown field: {shown(name)}")
        _need(checks[name](given), f"{where}: `{name}` has a value that is not allowed")
    return dict(value)


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise MalformedFile(what)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST_NUMBER


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST_ID


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_columns(value: Any) -> bool:
    return isinstance(value, list)


def _is_source(value: Any) -> bool:
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return texts and (not value or value[0] in (KEY, VALUE))


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _one_of(*values: Any) -> Check:
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def _mapping(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _is_unique_ids(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(stores, list)
        and all(isinstance(one, str) and _UNIQUE_ID.fullmatch(one) for one in stores)
        for stores in value
    )


_TARGET: Mapping[str, Check] = {
    "operator": _is_id,
    "from_operator": _or_none(_is_id),
    "batch": _is_number,
    "version": _is_number,
    "partitions": lambda value: type(value) is int and 1 <= value <= MOST_PARTITIONS,
    "provider": _one_of(HDFS, ROCKSDB),
    "parts": lambda value: isinstance(value, list) and bool(value),
    "codec": _one_of(*CODECS),
    "row_checksums": _is_bool,
    "avro": _is_bool,
    "delimiter": _one_of("", ","),
    "unique_ids": _or_none(_is_unique_ids),
    "in_flight": _or_none(_is_number),
    "zip_version": _one_of(1, 2),
    "numbers": _or_none(_mapping(_is_id)),
}
_PART: Mapping[str, Check] = {
    "store": lambda value: isinstance(value, str) and is_name(value),
    "family": _or_none(_is_text),
    "shape": lambda value: isinstance(value, str) and value in _SHAPES,
    "key_json": _is_text,
    "value_json": _is_text,
    "encoding_json": _or_none(_is_text),
    "key_id": _is_id,
    "value_id": _is_id,
    "recipe": lambda value: value is None or isinstance(value, dict),
    "source": _or_none(_is_text),
    "given": _is_bool,
    "kept": _is_bool,
}
_RECIPE: Mapping[str, Check] = {
    "key": _is_columns,
    "value": _is_columns,
    "merge": _or_none(_mapping(_is_text)),
}
_COLUMN: Mapping[str, Check] = {
    "name": _is_text,
    "source": _is_source,
    "fill": lambda value: True,
    "inner": _is_columns,
}
