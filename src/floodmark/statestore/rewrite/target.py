"""The target of a state rewrite: what a new checkpoint keeps of an operator, part by part."""

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
    """One kind of rows of the new state: a store, or one column family of it."""

    store: str
    """The folder below the partition's."""
    family: str | None = None
    shape: str = Shape.PAIRS.value
    key_json: str = ""
    value_json: str = ""
    encoding_json: str | None = None
    key_id: int = 0
    value_id: int = 0
    recipe: Recipe | None = None
    """None: it starts empty, or its rows are given."""
    source: str | None = None
    """What of the old operator is read, by the name that `floodmark state` has for it."""
    given: bool = False
    """A function of the user's makes the rows."""
    kept: bool = False
    """The rows of the whole store pass as they are, every column family of it."""

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
    """The state of one operator, and where its rows come from."""

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
    numbers: Mapping[str, int] | None = None
    """Column family → its number, where rows pass as they are."""

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.store for part in self.parts))

    @property
    def keeps_rows(self) -> bool:
        """No row changes: each is there again, in other files."""
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
