"""Lists the schemas of operators, stores and state variables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import FloodmarkError
from floodmark.screen import ShownInALine
from floodmark.state.rows.types import ddl, parse_struct
from floodmark.statestore.open import operator_outline
from floodmark.storage.files import Files


@dataclass(frozen=True, repr=False)
class StoreSchema(ShownInALine):
    """What one store holds, by the schema that Spark wrote."""

    operator: int
    """The stateful operator."""
    name: str | None
    """Spark's name of the operator: stateStoreSave, symmetricHashJoin…"""
    store: str
    """A store, a join's side, or a state variable."""
    kind: str | None
    """The kind of a state variable: ValueState, ListState or MapState."""
    key: str | None
    """The key's schema as DDL; null if Spark wrote none (before 3.1), or it cannot be read."""
    value: str | None
    """The value's schema as DDL; null as for `key`."""


def state_schemas(files: Files, checkpoint: Checkpoint) -> tuple[StoreSchema, ...]:
    return tuple(
        found
        for operator in checkpoint.state_operators
        for found in _of_operator(files, checkpoint, operator.operator, operator.name)
    )


def _of_operator(
    files: Files, checkpoint: Checkpoint, operator: int, name: str | None
) -> list[StoreSchema]:
    try:
        outline = operator_outline(files, checkpoint, operator)
    except FloodmarkError:  # the doctor reports damage
        return [StoreSchema(operator, name, "default", None, None, None)]
    kinds = _variables(outline.properties_json)
    found = []
    for store, families in outline.stores.items():
        for one in families:
            if one.name.startswith("$"):  # Spark's internal data beside a variable
                continue
            shown = one.name if one.name != "default" else store
            found.append(
                StoreSchema(
                    operator,
                    outline.name or name,
                    shown,
                    kinds.get(one.name),
                    _ddl(one.key_json),
                    _ddl(one.value_json),
                )
            )
    return found or [StoreSchema(operator, outline.name or name, "default", None, None, None)]


def _ddl(text: str) -> str | None:
    try:
        return ddl(parse_struct(text))
    except FloodmarkError:
        return None


def _variables(properties: str) -> dict[str, str]:
    try:
        value: Any = json.loads(properties) if properties else {}
    except ValueError:
        return {}
    listed = value.get("stateVariables") if isinstance(value, dict) else None
    return {
        str(one.get("stateName")): str(one.get("stateVariableType"))
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)
    }
