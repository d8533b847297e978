"""Describes the target of a state rewrite: what a new checkpoint keeps of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.state.rows.layout import Layout
from floodmark.state.shapes.operators import Reading, Shape
from floodmark.state.shapes.reshape import Recipe
from floodmark.state.shapes.schema import ColumnFamily
from floodmark.statestore.write import ROCKSDB

MOST_PARTITIONS = 1_000_000


@dataclass(frozen=True)
class Part:
    """One kind of rows in the new state: a store, or one column family of it."""

    store: str
    """The folder inside the partition's folder."""
    family: str | None = None
    shape: str = Shape.PAIRS.value
    key_json: str = ""
    value_json: str = ""
    encoding_json: str | None = None
    key_id: int = 0
    value_id: int = 0
    recipe: Recipe | None = None
    """How to make the rows; None if it starts empty, or if its rows are given."""
    source: str | None = None
    """The part of the old operator to read, by its name in `floodmark state`."""
    given: bool = False
    """Whether a function of the user makes the rows."""
    kept: bool = False
    """Whether all rows of the store stay unchanged, in every column family."""

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
class StateTarget:
    """The new state of one operator, and the origin of its rows."""

    operator: int
    from_operator: int | None
    """The operator in the old checkpoint; None for a new operator."""
    batch: int
    """The old batch whose state is read."""
    version: int
    """The version of the state in the new checkpoint."""
    partitions: int
    provider: str
    parts: tuple[Part, ...]
    codec: str = "lz4"
    row_checksums: bool = False
    avro: bool = False
    delimiter: str = ","
    unique_ids: tuple[tuple[str, ...], ...] | None = None
    """Partition → the unique id of each store, if the state has unique ids."""
    in_flight: int | None = None
    """The old in-flight batch, if it has left a complete state."""
    zip_version: int = 1
    """The version that RocksDB's zips name: 2 for Spark 4.0 with unique ids."""
    numbers: Mapping[str, int] | None = None
    """Column family → its number, if rows stay unchanged."""

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.store for part in self.parts))

    @property
    def keeps_rows(self) -> bool:
        """Whether no row changes: every row is also in the new files."""
        return all(part.kept for part in self.parts)

    def families(self, store: str) -> dict[str, int]:
        if self.numbers is not None:
            return dict(self.numbers)
        names = [part.family for part in self.parts if part.store == store and part.family]
        return {name: number for number, name in enumerate(names, 1)}

    def unique_id(self, partition: int, store: str) -> str | None:
        if self.unique_ids is None:
            return None
        mine = self.unique_ids[partition]
        return mine[JOIN_STORES.index(store)] if len(mine) > 1 else mine[0]


def layout_of(target: StateTarget, part: Part) -> Layout:
    schema = part.reading.schema
    assert schema is not None
    rocksdb = target.provider == ROCKSDB
    return Layout(
        schema.key,
        schema.value,
        rocksdb,
        schema.encoding,
        target.families(part.store)[part.family] if part.family is not None and rocksdb else None,
        part.reading.shape in (Shape.LIST, Shape.VALUES),
        target.delimiter.encode(),
        target.row_checksums and rocksdb,
        target.avro and part.family is not None,
        {part.value_id: schema.value},
    )
