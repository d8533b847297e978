"""The rows of one state store after a batch, read a partition at a time.

`statestore/open.py` finds what there is to read and what it means; here are the questions
that can be asked of it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import (
    store_folder,
)
from floodmark.errors import MalformedFile, NoAnswer, WrongUse
from floodmark.state.files.records import one_record
from floodmark.state.keys.partitioning import partition_of
from floodmark.state.rows.layout import BYTES, Layout
from floodmark.state.rows.one_row import decode_row, encode_row, partition_of_row
from floodmark.state.rows.types import Struct, arrow_type, ddl, distinct
from floodmark.state.rows.values import coerce, plain
from floodmark.state.shapes.operators import JoinCounts, Reading, Shape
from floodmark.state.shapes.schema import PLAIN
from floodmark.statestore.store import OpenedPartition, StoreAt, named

if TYPE_CHECKING:
    import pyarrow as pa

    from floodmark.state.files.records import Records

_MOST_SIDE_BY_SIDE = 8
_GIVE = (
    "Give one: --key-schema 'name STRING' --value-schema 'count BIGINT' (in Python: schema=(…, …))"
)
_HINT = (
    f"Spark wrote no schema, so the rows are bytes. {_GIVE}, or run the query once on"
    " Spark 3.1 or later, which writes it."
)
_LOST = (
    f"The schema file is gone, so the rows are bytes. {_GIVE}. Restore the file from a backup"
    " before the next start: Spark would write the running query's in its place, without a"
    " comparison (`floodmark explain state-schema-missing`)."
)


class KeyNotThere(NoAnswer):
    """The state knows nothing of that key."""


@dataclass(frozen=True)
class PartitionStats:
    partition: int
    """The partition's number."""
    keys: int
    """How many keys it has."""
    bytes: int
    """How large its files are."""


@dataclass(frozen=True)
class StateStats:
    keys: int
    """How many keys the store has."""
    bytes: int
    """How large their files are."""
    partitions: tuple[PartitionStats, ...]
    """The same for each partition."""
    skew: float | None
    """The fullest partition's keys over the mean; None where there are no keys."""

    def __repr__(self) -> str:
        from floodmark.screen import fields_text

        return fields_text(self)

    def _repr_html_(self) -> str:
        from floodmark.screen import fields_html

        return fields_html(self)


@dataclass(frozen=True)
class StateView:
    """Rows of (partition, key, value) as they were after a batch."""

    operator: int
    operator_name: str | None
    store: str
    stores: tuple[str, ...]
    """All that can be asked for instead of `store`."""
    batch: int
    partitions: tuple[int, ...]
    reading: Reading
    at: StoreAt
    counts_at: StoreAt | None = None
    """A join side's other store."""
    avro: bool = False
    written: Mapping[int, Struct] | None = None
    schema_lost: bool = False
    """Where there is no schema: the Spark that wrote the state writes one."""
    given: bool = False
    """The schema is the user's: no row is shown before its bytes were compared with it."""

    def __repr__(self) -> str:
        from floodmark.screen import fields_text

        return fields_text(self)

    def _repr_html_(self) -> str:
        from floodmark.statestore.notebook import state_html

        return state_html(self)

    @property
    def key_type(self) -> Struct:
        return distinct(self.reading.key or BYTES)

    @property
    def value_type(self) -> Struct:
        return distinct(self.reading.value or BYTES)

    @property
    def key_schema(self) -> str:
        return ddl(self.key_type)

    @property
    def value_schema(self) -> str:
        return ddl(self.value_type)

    @property
    def hint(self) -> str:
        """What to do where the rows are bytes, for want of a schema."""
        if self.reading.schema is not None:
            return ""
        return _LOST if self.schema_lost else _HINT

    @property
    def noun(self) -> str:
        """What a store has one record of each: a join's key has a row for each that it keeps."""
        return "row" if self.reading.shape in ("join", "map", "timer") else "key"

    @property
    def arrow_schema(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema(
            [
                pa.field("partition", pa.int32(), False),
                pa.field("key", arrow_type(self.key_type)),
                pa.field("value", arrow_type(self.value_type)),
            ]
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows; large RocksDB partitions are read side by side, and take turns."""
        waiting = self._each()
        if self.at.provider != "rocksdb" or len(self.partitions) < 2:
            yield from chain.from_iterable(waiting)
            return
        reading = deque(islice(waiting, min(os.cpu_count() or 1, _MOST_SIDE_BY_SIDE)))
        while reading:
            rows = reading.popleft()
            found = next(rows, None)
            if found is None:
                reading.extend(islice(waiting, 1))
                continue
            yield found
            reading.append(rows)

    def _in_order(self) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(self._each())

    def _each(self) -> Iterator[Iterator[pa.RecordBatch]]:
        from floodmark.progress import counted

        return map(self.partition_batches, counted(self.partitions, "partitions"))

    def partition_batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """One partition's rows; this is what an executor runs."""
        with named(store_folder(self.operator, partition, self.at.store)):
            counts = self._counts(partition)
            with self.at.open(partition) as opened:
                layout = self.layout(opened)
                for records in opened.records():
                    found = self._batch(partition, layout, records, counts)
                    if found.num_rows:
                        yield found

    def to_arrow(self) -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches()), self.arrow_schema)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, a row a key: its partition, the key's fields, the value's.

        Of fields with one name, the value's is called `value.NAME`.
        """
        found = self.to_arrow().flatten()
        keys = [name.removeprefix("key.") for name in found.column_names]
        names = [
            plain if (plain := name.removeprefix("value.")) not in keys else name for name in keys
        ]
        return found.rename_columns(names).to_pandas()

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Rows as plain JSON data."""
        found: list[dict[str, Any]] = []
        for batch in self._in_order():
            room = batch.num_rows if limit is None else limit - len(found)
            found += plain_rows(batch.slice(0, room))
            if limit is not None and len(found) >= limit:
                break
        return found

    def lookup(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of one key; a list and a map have several.

        With some of the key's fields, the rows of all keys that have these values.
        """
        if _is_part(self.key_type, key):
            return self._with_part(key)
        try:
            wanted = coerce(key, self.key_type)
        except WrongUse as error:
            error.do = self.hint or error.do
            raise
        found = self._lookup_simple(wanted)
        if found is None:
            found = self._lookup_any(wanted)
        if found:
            return found
        raise self._not_there()

    def _with_part(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        from floodmark.state.keys.some_key_fields import PartOfKey

        part = PartOfKey(self.key_type, key)
        found = [
            row
            for batch in self._in_order()
            for at in part.matching(batch.column(1))
            for row in plain_rows(batch.slice(at, 1))
        ]
        if found:
            return found
        raise self._not_there()

    def _not_there(self) -> KeyNotThere:
        return KeyNotThere(
            f"operator {self.operator}, store {self.store}: no such key after batch {self.batch}",
            f"The key's fields are {self.key_schema}.",
            "Check the value, or ask for another batch.",
        )

    def stats(self) -> StateStats:
        parts = tuple(self._partition_stats(partition) for partition in self.partitions)
        keys = sum(part.keys for part in parts)
        most = max((part.keys for part in parts), default=0)
        skew = round(most * len(parts) / keys, 3) if keys else None
        return StateStats(keys, sum(part.bytes for part in parts), parts, skew)

    def export(self, path: str) -> int:
        """All rows to a Parquet file; gives their number. The file appears when it is whole."""
        from floodmark.statestore.export import export_parquet

        return export_parquet(self.batches(), self.arrow_schema, path)

    def layout(self, opened: OpenedPartition) -> Layout:
        return _layout(self.reading, opened, self.avro, self.written)

    def _counts(self, partition: int) -> JoinCounts | None:
        reading = self.reading.counts
        if reading is None or reading.schema is None or self.counts_at is None:
            return None
        from floodmark.state.rows.unsaferow_write import encode_rows

        counts = JoinCounts()
        with self.counts_at.open(partition) as opened:
            layout = _layout(reading, opened, False, None)
            for records in opened.records():
                keys, values = layout.decode(records)
                counts.add(encode_rows(keys, reading.schema.key), values.field(0).to_numpy(False))
        return counts

    def _batch(
        self, partition: int, layout: Layout, records: Records, counts: JoinCounts | None
    ) -> pa.RecordBatch:
        import numpy as np
        import pyarrow as pa

        if self.given:
            self._require_fit(layout, records)
        keys, values = layout.decode(records)
        if counts is not None:
            index = keys.field(len(keys.type) - 1).to_numpy(False)
            shown_keys, shown = self.reading.show(keys, values)
            mask = pa.array(counts.keeps(shown_keys, self.key_type, index))
            keys, values = shown_keys.filter(mask), shown.filter(mask)
        else:
            keys, values = self.reading.show(keys, values)
        numbers = pa.array(np.full(len(keys), partition, np.int32))
        return pa.RecordBatch.from_arrays([numbers, keys, values], schema=self.arrow_schema)

    def require_first_rows_fit(self) -> None:
        """A wrong schema is refused before anything is looked up by it."""
        for partition in self.partitions:
            with self.at.open(partition) as opened:
                records = next(iter(opened.records()), None)
                if records is not None and len(records):
                    self._require_fit(self.layout(opened), records)
                    return

    def _require_fit(self, layout: Layout, records: Records) -> None:
        why = layout.misfit(records)
        if why is not None:
            raise MalformedFile(
                "the given key and value schemas do not fit the rows of the state",
                f"{why[0].upper()}{why[1:]}.",
                "Give --key-schema the columns that the query groups by and --value-schema those "
                "that it keeps for each key, in the query's order and with its types.",
            )

    def _partition_stats(self, partition: int) -> PartitionStats:
        with self.at.open(partition) as opened:
            layout = self.layout(opened)
            keys = size = 0
            for records in opened.records():
                mine = layout.mine(records)
                keys += len(mine)
                size += mine.keys.size + mine.values.size
        return PartitionStats(partition, keys, size)

    def _lookup_simple(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """The way without Arrow, which takes longer to load than all the rest to do.

        None is no answer: then the key has to be looked up the other way.
        """
        if self.reading.shape is not Shape.PAIRS or self.reading.schema is None:
            return None
        row = encode_row(wanted, self.key_type)
        if row is None:
            return None
        likely = partition_of_row(row, self._hashed_key, max(len(self.partitions), 1))
        for partition in self._from(likely):
            with self.at.open(partition) as opened:
                layout = self.layout(opened)
                if not (layout.has_plain_keys and layout.has_plain_values):
                    return None
                value = opened.get(layout.stored_key(row))
            if value is not None:
                shown = decode_row(layout.bare_value(value), self.value_type)
                key = decode_row(row, self.key_type)
                found = {"partition": partition, "key": key, "value": shown}
                return None if shown is None else [found]
        return []

    def _lookup_any(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        import pyarrow as pa

        key = pa.array([wanted], arrow_type(self.key_type))
        likely = 0
        if self.reading.key is not None and self.partitions:
            likely = partition_of(key[0], self._hashed_key, len(self.partitions))
        for partition in self._from(likely):
            found = self._lookup_in(partition, key)
            if found:
                return found
        return []

    @property
    def _hashed_key(self) -> Struct:
        """The columns that Spark's hash says by where a key should be."""
        encoding = self.reading.schema.encoding if self.reading.schema else PLAIN
        if self.reading.shape is Shape.PAIRS and encoding.prefix_columns:
            return Struct(self.key_type.fields[: encoding.prefix_columns])
        return self.key_type

    def _from(self, likely: int) -> list[int]:
        """The others are looked at after it."""
        return sorted(self.partitions, key=lambda partition: partition != likely)

    def _lookup_in(self, partition: int, wanted: pa.Array) -> list[dict[str, Any]]:
        with self.at.open(partition) as opened:
            layout = self.layout(opened)
            if self.reading.shape in (Shape.PAIRS, Shape.LIST):
                encoded = layout.encode_key(wanted[0].as_py()) if _is_exact(wanted) else None
                if encoded is not None:
                    value = opened.get(encoded)
                    if value is None:
                        return []
                    found = one_record(encoded, value)
                    return plain_rows(self._batch(partition, layout, found, None))
        return self._search(partition, wanted)

    def _search(self, partition: int, wanted: pa.Array) -> list[dict[str, Any]]:
        """Every row is compared, by its key's bytes."""
        import numpy as np

        from floodmark.state.keys.keyset import hash_rows
        from floodmark.state.rows.unsaferow_write import encode_rows

        aim = hash_rows(encode_rows(wanted, self.key_type))
        found: list[dict[str, Any]] = []
        for batch in self.partition_batches(partition):
            hashes = hash_rows(encode_rows(batch.column(1), self.key_type))
            rows = np.nonzero((hashes == aim).all(axis=0))[0]
            for row in rows.tolist():
                found += plain_rows(batch.slice(row, 1))
        return found


def _is_exact(wanted: pa.Array) -> bool:
    # A map among the key's columns comes back from Arrow as pairs, which is fine; a time
    # outside Python's years does not come back at all.
    try:
        wanted.to_pylist()
    except (OverflowError, ValueError):
        return False
    return True


def plain_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = batch.schema.names
    columns = [[plain(value) for value in column] for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _is_part(key_type: Struct, wanted: Mapping[str, Any]) -> bool:
    """Whether only some of the key's fields are given, and nothing else."""
    names = set(key_type.names)
    return bool(wanted) and set(wanted) < names and len(names) == len(key_type.names)


def _layout(
    reading: Reading, opened: OpenedPartition, avro: bool, written: Mapping[int, Struct] | None
) -> Layout:
    schema, store = reading.schema, opened.store
    rocksdb = store.provider == "rocksdb"
    return Layout(
        schema.key if schema else None,
        schema.value if schema else None,
        rocksdb,
        schema.encoding if schema else PLAIN,
        opened.family_number(reading.family) if rocksdb else None,
        reading.shape in (Shape.LIST, Shape.VALUES),
        store.delimiter,
        store.row_checksums and rocksdb,
        avro,
        written or {},
    )


def with_partitions(view: StateView, partitions: tuple[int, ...]) -> StateView:
    """The same view over some of its partitions."""
    return replace(view, partitions=partitions)
