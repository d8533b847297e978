"""What a migration needs to know of an operator's state: names and schemas. Pure."""

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
    """In words: `sum(amountPaid)`."""
    columns: int
    initial: tuple[Any, ...] | None = None
    """What a new key starts from, as JSON data; None where nobody knows."""
    expression: Expression | None = None
    """What it is made of, down to the sources; two that are equal mean the same."""

    @property
    def name(self) -> str:
        return self.function.partition("(")[0]


@dataclass(frozen=True)
class StoreShape:
    """One store, or one column family: the rows of one shape."""

    name: str
    key: Struct
    value: Struct


@dataclass(frozen=True)
class OperatorShape:
    number: int
    name: str | None
    stores: tuple[StoreShape, ...]
    aggregates: tuple[Aggregate, ...] | None = None
    """In the order of their columns; None where the plan, or what a function keeps, is unknown."""
    functions: tuple[Expression, ...] | None = None
    """The aggregate functions of the plan; None where it is not known."""

    @property
    def kind(self) -> str:
        if self.name is not None:
            return kind_of(self.name)
        return _kind_of(self.stores)

    @property
    def words(self) -> str:
        return f"operator {self.number} ({self.name or self.kind})"


def _kind_of(stores: tuple[StoreShape, ...]) -> str:
    """Spark 3 does not write down which operator it is, but the rows show it."""
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
