"""Describes an operator's state for a migration: names and schemas. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.checkpoint.operator_kinds import (
    AGGREGATION,
    DEDUP,
    DEDUP_WITHIN,
    GROUPS,
    JOIN,
    LIMIT,
    SESSION,
    UNKNOWN,
    kind_of,
)
from floodmark.checkpoint.plan.tree import Expression
from floodmark.state.rows.types import Struct


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function and the columns of state that it keeps."""

    function: str
    """The function as a text: `sum(amountPaid)`."""
    columns: int
    initial: tuple[Any, ...] | None = None
    """The values with which a new key starts, as JSON data; None: unknown."""
    expression: Expression | None = None
    """The function's expression, down to the sources; equal expressions mean the same."""

    @property
    def name(self) -> str:
        return self.function.partition("(")[0]


@dataclass(frozen=True)
class StoreShape:
    """One store, or one column family, whose rows all have the same form."""

    name: str
    key: Struct
    value: Struct


@dataclass(frozen=True)
class OperatorShape:
    number: int
    name: str | None
    stores: tuple[StoreShape, ...]
    aggregates: tuple[Aggregate, ...] | None = None
    """The aggregates in their columns' order; None where the plan or a function is unknown."""
    functions: tuple[Expression, ...] | None = None
    """The aggregate functions of the plan; None where it is unknown."""

    @property
    def kind(self) -> str:
        if self.name is not None:
            return kind_of(self.name)
        return _kind_of(self.stores)

    @property
    def words(self) -> str:
        return f"operator {self.number} ({self.name or self.kind})"


def _kind_of(stores: tuple[StoreShape, ...]) -> str:
    """Find the operator from its rows, as Spark 3 does not write its name."""
    names = {store.name for store in stores}
    if JOIN_STORES[0] in names:
        return JOIN
    if not stores:
        return UNKNOWN
    key, value = stores[0].key.names, stores[0].value.names
    if key[-1:] == ("sessionStartTime",):
        return SESSION
    if value == ("__dummy__",):
        return DEDUP
    if value == ("expiresAtMicros",):
        return DEDUP_WITHIN
    if value[:1] == ("groupState",):
        return GROUPS
    return LIMIT if (key, value) == (("key",), ("value",)) else AGGREGATION
