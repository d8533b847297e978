"""The target of a state rewrite: what new code keeps, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.state.rows.layout import Layout
from floodmark.state.shapes.operators import Reading, Shape
from floodmark.state.shapes.reshape import Recipe, recipe_from_json
from floodmark.state.shapes.schema import ColumnFamily
from floodmark.statestore.write import ROCKSDB
from floodmark.wire import to_wire


@dataclass(frozen=True)
class Part:
    """One kind of rows of the new state: a store, or one column family of it."""

    store: str
    """The folder below the partition's."""
    family: str | None
    shape: str
    key_json: str
    value_json: str
    encoding_json: str | None = None
    key_id: int = 0
    value_id: int = 0
    recipe: Recipe | None = None
    """None: it starts empty, or its rows are given."""
    source: str | None = None
    """What of the old operator is read, by the name that `floodmark state` has for it."""
    given: bool = False
    """A function of the user's makes the rows."""

    @property
    def name(self) -> str:
        return self.family or self.store

    @property
    def reading(self) -> Reading:
        schema = ColumnFamily(
            self.name,
            self.key_json,
            self.value_json,
            self.key_id,
            self.value_id,
            self.encoding_json,
        )
        return Reading(self.name, self.store, self.family, Shape(self.shape), schema)


@dataclass(frozen=True)
class ReshapeTarget:
    """The state of one operator as the new code wants it."""

    operator: int
    from_operator: int | None
    """Whose state it is in the old checkpoint."""
    batch: int
    """The old batch after which the state is taken."""
    version: int
    """The version that it is in the new checkpoint."""
    partitions: int
    provider: str
    parts: tuple[Part, ...]
    codec: str = "lz4"
    row_checksums: bool = False
    avro: bool = False
    delimiter: str = ","
    unique_ids: tuple[tuple[str, ...], ...] | None = None
    """partition → the unique id of each store, where state has them."""
    in_flight: int | None = None
    """The old batch that was planned and not committed, where it has left a whole state."""
    zip_version: int = 1
    """What RocksDB's zips say of themselves: 2 for Spark 4.0 with unique ids."""

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.store for part in self.parts))

    def families(self, store: str) -> dict[str, int]:
        names = [part.family for part in self.parts if part.store == store and part.family]
        return {name: number for number, name in enumerate(names, 1)}

    def unique_id(self, partition: int, store: str) -> str | None:
        if self.unique_ids is None:
            return None
        mine = self.unique_ids[partition]
        return mine[JOIN_STORES.index(store)] if len(mine) > 1 else mine[0]


def goal_to_json(goal: ReshapeTarget) -> dict[str, Any]:
    value: dict[str, Any] = to_wire(goal)
    return value


def goal_from_json(value: Mapping[str, Any]) -> ReshapeTarget:
    parts = tuple(
        Part(**{**part, "recipe": recipe_from_json(part["recipe"]) if part["recipe"] else None})
        for part in value["parts"]
    )
    ids = value.get("unique_ids")
    unique = tuple(tuple(stores) for stores in ids) if ids is not None else None
    return ReshapeTarget(**{**value, "parts": parts, "unique_ids": unique})


def layout_of(goal: ReshapeTarget, part: Part) -> Layout:
    schema = part.reading.schema
    assert schema is not None
    rocksdb = goal.provider == ROCKSDB
    return Layout(
        schema.key,
        schema.value,
        rocksdb,
        schema.encoding,
        goal.families(part.store)[part.family] if part.family is not None and rocksdb else None,
        part.reading.shape in (Shape.LIST, Shape.VALUES),
        goal.delimiter.encode(),
        goal.row_checksums and rocksdb,
        goal.avro and part.family is not None,
        {part.value_id: schema.value},
    )
