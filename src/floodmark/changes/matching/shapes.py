"""What an operator keeps, as the judgement of a migration needs it: names and schemas. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.plan.tree import Expression
from floodmark.state.rows.types import Struct

AGGREGATION, SESSION, DEDUP, JOIN = "aggregation", "session window", "deduplication", "join"
GROUPS, VARIABLES, LIMIT = "groups with state", "transformWithState", "limit"
UNKNOWN = "unknown"
_KINDS = {
    "stateStoreSave": AGGREGATION,
    "StatefulStreamlineAggregate": AGGREGATION,
    "sessionWindowStateStoreSaveExec": SESSION,
    "dedupe": DEDUP,
    "dedupeWithinWatermark": DEDUP,
    "symmetricHashJoin": JOIN,
    "globalLimit": LIMIT,
    "flatMapGroupsWithState": GROUPS,
    "applyInPandasWithState": GROUPS,
    "transformWithStateExec": VARIABLES,
    "transformWithStateInPandasExec": VARIABLES,
    "transformWithStateInPySparkExec": VARIABLES,
}


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
            return _KINDS.get(self.name, UNKNOWN)
        return _kind_of(self.stores)

    @property
    def words(self) -> str:
        return f"operator {self.number} ({self.name or self.kind})"


def _kind_of(stores: tuple[StoreShape, ...]) -> str:
    """Spark 3 does not write down which operator it is, but the rows show it."""
    names = {store.name for store in stores}
    if "left-keyToNumValues" in names:
        return JOIN
    if not stores:
        return UNKNOWN
    key, value = stores[0].key.names, stores[0].value.names
    if key[-1:] == ("sessionStartTime",):
        return SESSION
    if value in (("__dummy__",), ("expiresAtMicros",)):
        return DEDUP
    if value[:1] == ("groupState",):
        return GROUPS
    return LIMIT if (key, value) == (("key",), ("value",)) else AGGREGATION
