"""Yields the rows of an old state in the new state's form, with the new partition of each.

If code has changed, rows are decoded, reshaped and encoded. If only partitions or the provider
change, rows pass as bytes, and only the part of a key that decides its partition is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from floodmark.checkpoint.layout import store_folder
from floodmark.checkpoint.model import Checkpoint
from floodmark.state.files.records import Records
from floodmark.state.keys.grouping import grouping_of
from floodmark.state.rows.encoding import encode
from floodmark.state.rows.types import stored
from floodmark.state.shapes.reshape import Reshaping
from floodmark.statestore.open import open_state
from floodmark.statestore.rewrite.operator_stores import (
    StoreToRewrite,
    conversion_of,
    hashes_in,
    misplaced,
    require_at_home,
    stores_of,
)
from floodmark.statestore.rewrite.target import Part, StateTarget, layout_of
from floodmark.statestore.store import named
from floodmark.statestore.view import StateView
from floodmark.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa

    Rows = Iterator[tuple[pa.Array, pa.Array]]


class OldRows(Protocol):
    """The rows of the old state for one part of the new state."""

    @property
    def partitions(self) -> tuple[int, ...]: ...

    @property
    def moves(self) -> bool:
        """Whether rows go to other partitions; otherwise each stays in its own."""

    def rows(self, partition: int) -> Iterator[Records]:
        """Yield the rows of an old partition."""

    def placed(self, partition: int) -> Iterator[tuple[Records, Any]]:
        """Yield the same rows, with the new partition of each."""


OldState = Callable[[Part, int], "OldRows | None"]
"""A part of the new state and an old batch → the batch's rows for this part."""
Moved = Callable[[Part, int], Callable[[int], Iterator[Records]]]
"""A part and an old batch → a new partition → the rows for this partition."""


def old_state(target: StateTarget, origin: Files, checkpoint: Checkpoint) -> OldState:
    stores: dict[int, tuple[StoreToRewrite, ...]] = {}

    def rows(part: Part, batch: int) -> OldRows | None:
        operator = target.from_operator
        if operator is None:
            return None
        if part.kept:
            if batch not in stores:
                stores[batch] = stores_of(origin, checkpoint, operator, batch)
            by_name = {one.name: one for one in stores[batch]}
            return KeptRows(target, by_name[part.store])
        if part.source is None or part.recipe is None:
            return None
        view = open_state(origin, checkpoint, operator, part.source, batch)
        return ReshapedRows(target, part, view)

    return rows


@dataclass(frozen=True)
class KeptRows:
    """A whole store, byte for byte, or in the other provider's form."""

    target: StateTarget
    store: StoreToRewrite

    @property
    def partitions(self) -> tuple[int, ...]:
        return self.store.partitions

    @property
    def moves(self) -> bool:
        return not self.store.is_keyless and self.target.partitions != len(self.partitions)

    def rows(self, partition: int) -> Iterator[Records]:
        with named(self._folder(partition)), self.store.at.open(partition) as opened:
            conversion = conversion_of(self.store, opened, self.target.provider)
            for records in opened.records():
                yield conversion.forth(records)

    def placed(self, partition: int) -> Iterator[tuple[Records, Any]]:
        with named(self._folder(partition)), self.store.at.open(partition) as opened:
            conversion = conversion_of(self.store, opened, self.target.provider)
            for records in opened.records():
                if len(records):
                    hashes = hashes_in(self.store, opened, partition, records)
                    require_at_home(self.store, partition, hashes)
                    yield conversion.forth(records), hashes % self.target.partitions

    def _folder(self, partition: int) -> str:
        return store_folder(self.store.at.operator, partition, self.store.name)


@dataclass(frozen=True)
class ReshapedRows:
    """The rows of one store or column family, in the new code's columns."""

    target: StateTarget
    part: Part
    view: StateView

    @property
    def partitions(self) -> tuple[int, ...]:
        return self.view.partitions

    @property
    def moves(self) -> bool:
        return not (self._keeps_hashes and len(self.partitions) == self.target.partitions)

    @property
    def _keeps_hashes(self) -> bool:
        """Whether the hash of every key stays the same: a wider type or another order changes
        it.
        """
        assert self.part.recipe is not None
        before, after = (
            [(field.name, stored(field.type)) for field in grouping_of(reading).fields]
            for reading in (self.view.reading, self.part.reading)
        )
        return self.part.recipe.keeps_keys and before == after

    def rows(self, partition: int) -> Iterator[Records]:
        return encoded(self.target, self.part, self._reshaped(partition))

    def placed(self, partition: int) -> Iterator[tuple[Records, Any]]:
        layout = layout_of(self.target, self.part)
        for keys, values in self._reshaped(partition):
            records = encode(layout, keys, values, self.part.key_id, self.part.value_id)
            owners = keys
            if layout.has_elements:  # a record holds all elements of its key
                own = records.keys if layout.family is None else records.keys.skip(2)
                owners = layout.decode_keys(own)
            yield records, self._homes(owners)

    def _reshaped(self, partition: int) -> Rows:
        schema = self.part.reading.schema
        assert schema is not None
        assert self.part.recipe is not None
        where = f"operator {self.target.operator}, {self.part.name}"
        reshaping = Reshaping(self.part.recipe, schema.key, schema.value, where)
        looks = self._keeps_hashes and self.moves
        for keys, values in self._stored(partition):
            if looks:
                self._require_at_home(partition, keys)
            yield reshaping.rows(keys, values)

    def _stored(self, partition: int) -> Rows:
        """Yield the rows of a partition as the store keeps them, not as a person sees them."""
        with self.view.at.open(partition) as opened:
            layout = self.view.layout(opened)
            for records in opened.records():
                keys, values = layout.decode(records)
                if len(keys):
                    yield keys, values

    def _require_at_home(self, partition: int, keys: pa.Array) -> None:
        """Refuse keys that are not where their hash says: then the deciding columns are unknown."""
        grouping, count = grouping_of(self.view.reading), len(self.partitions)
        if grouping.is_keyless or count == 1:
            return
        if bool((grouping.hashes(keys).view("i4") % count != partition).any()):
            raise misplaced(self.view, partition)

    def _homes(self, keys: pa.Array) -> Any:
        """Return the partition in which Spark will look for each key."""
        import numpy as np

        grouping, count = grouping_of(self.part.reading), self.target.partitions
        if grouping.is_keyless or count == 1:
            return np.zeros(len(keys), np.int64)
        return grouping.hashes(keys).view("i4").astype(np.int64) % count


def encoded(target: StateTarget, part: Part, rows: Rows) -> Iterator[Records]:
    layout = layout_of(target, part)
    for keys, values in rows:
        if len(keys):
            yield encode(layout, keys, values, part.key_id, part.value_id)
