"""Reads the rows of one state store after a batch, one partition at a time.

`statestore/open.py` finds what can be read and what it means; this module answers questions about
it.
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
from floodmark.errors import MalformedFile
from floodmark.state.rows.layout import BYTES, Layout
from floodmark.state.rows.types import Struct, arrow_type, ddl, distinct
from floodmark.state.rows.values import plain
from floodmark.state.shapes.operators import JoinCounts, Reading, Shape
from floodmark.state.shapes.schema import PLAIN
from floodmark.statestore.store import OpenedPartition, StoreAt, named

if TYPE_CHECKING:
    import pyarrow as pa

    from floodmark.state.files.records import Records
    from floodmark.statestore.key_counts import StateStats

_MOST_SIDE_BY_SIDE = 8
_GIVE = (
    "Give a schema: --key-schema 'name STRING' --value-schema 'count BIGINT' (in Python: "
    "schema=(…, …))"
)
_HINT = (
    f"Spark wrote no schema, so the rows are shown as bytes. {_GIVE}. Or run the query once on "
    "Spark 3.1 or later, which writes a schema."
)
_LOST = (
    f"The schema file is missing, so the rows are shown as bytes. {_GIVE}. Restore the file from "
    "a backup before the next start; otherwise Spark writes the running query's schema in its "
    "place, without a comparison (`floodmark explain state-schema-missing`)."
)


@dataclass(frozen=True)
class StateView:
    """Rows of (partition, key, value) after a batch."""

    operator: int
    """Its number in the plan; the one nearest the sink is 0."""
    operator_name: str | None
    """Spark's name of the operator."""
    store: str
    """The store that is read; a join has four."""
    stores: tuple[str, ...]
    """All names that can be given instead of `store`."""
    batch: int
    """The batch after which the rows were so."""
    partitions: tuple[int, ...]
    """The partitions that are read."""
    reading: Reading
    """How the bytes are read as keys and values."""
    at: StoreAt
    """Where the store lies, and at which version."""
    counts_at: StoreAt | None = None
    """The second store of a join side."""
    avro: bool = False
    """Keys and values are in Avro."""
    written: Mapping[int, Struct] | None = None
    """The schemas by their numbers, where rows name theirs."""
    schema_lost: bool = False
    """Whether the schema is missing although the Spark that wrote the state writes schemas."""
    given: bool = False
    """Whether the user gave the schema: the bytes of each row are compared with it first."""

    def __repr__(self) -> str:
        from floodmark.screen import fields_text

        return fields_text(self)

    def _repr_html_(self) -> str:
        from floodmark.statestore.notebook import state_html

        return state_html(self)

    @property
    def key_type(self) -> Struct:
        """The key's columns and their types."""
        return distinct(self.reading.key or BYTES)

    @property
    def value_type(self) -> Struct:
        """The value's columns and their types."""
        return distinct(self.reading.value or BYTES)

    @property
    def key_schema(self) -> str:
        """The key's columns in SQL's words."""
        return ddl(self.key_type)

    @property
    def value_schema(self) -> str:
        """The value's columns in SQL's words."""
        return ddl(self.value_type)

    @property
    def hint(self) -> str:
        """What to do if the rows are bytes, because there is no schema."""
        if self.reading.schema is not None:
            return ""
        return _LOST if self.schema_lost else _HINT

    @property
    def noun(self) -> str:
        """The word for one record: `row` for joins, maps and timers, otherwise `key`."""
        return "row" if self.reading.shape in ("join", "map", "timer") else "key"

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the Arrow tables: partition, key, value."""
        import pyarrow as pa

        return pa.schema(
            [
                pa.field("partition", pa.int32(), False),
                pa.field("key", arrow_type(self.key_type)),
                pa.field("value", arrow_type(self.value_type)),
            ]
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; large RocksDB partitions are read at the same time, in turns."""
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

    def _each(self) -> Iterator[Iterator[pa.RecordBatch]]:
        from floodmark.progress import counted

        return map(self.partition_batches, counted(self.partitions, "partitions"))

    def partition_batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield one partition's rows; an executor runs this."""
        with named(store_folder(self.operator, partition, self.at.store)):
            counts = self._counts(partition)
            with self.at.open(partition) as opened:
                layout = self.layout(opened)
                for records in opened.records():
                    found = shown_batch(self, partition, layout, records, counts)
                    if found.num_rows:
                        yield found

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow.Table: partition, key, value."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches()), self.arrow_schema)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each key: partition, key fields, value fields.

        If a key field and a value field have the same name, the value's is called `value.NAME`.
        """
        found = self.to_arrow().flatten()
        keys = [name.removeprefix("key.") for name in found.column_names]
        names = [
            plain if (plain := name.removeprefix("value.")) not in keys else name for name in keys
        ]
        return found.rename_columns(names).to_pandas()

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Yield the rows as plain JSON data."""
        found: list[dict[str, Any]] = []
        for batch in rows_in_order(self):
            room = batch.num_rows if limit is None else limit - len(found)
            found += plain_rows(batch.slice(0, room))
            if limit is not None and len(found) >= limit:
                break
        return found

    def lookup(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of one key; a list and a map have several.

        With only some of the key's fields, return the rows of all keys that have these values.
        """
        from floodmark.statestore.key_lookup import rows_of_key

        return rows_of_key(self, key)

    def stats(self) -> StateStats:
        """Return how many keys and bytes each partition has."""
        from floodmark.statestore.key_counts import StateStats, partition_stats

        return StateStats.over(partition_stats(self, partition) for partition in self.partitions)

    def export(self, path: str) -> int:
        """Write all rows to a Parquet file, which appears when it is complete; return their
        number.
        """
        from floodmark.statestore.export import export_parquet

        return export_parquet(self.batches(), self.arrow_schema, path)

    def layout(self, opened: OpenedPartition) -> Layout:
        """Return where each column stands in the bytes of an opened partition's rows."""
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

    def require_first_rows_fit(self) -> None:
        """Refuse a wrong schema before any lookup uses it."""
        for partition in self.partitions:
            with self.at.open(partition) as opened:
                records = next(iter(opened.records()), None)
                if records is not None and len(records):
                    _require_fit(self.layout(opened), records)
                    return


def rows_in_order(view: StateView) -> Iterator[pa.RecordBatch]:
    """All rows, one partition after another."""
    return chain.from_iterable(view._each())


def shown_batch(
    view: StateView, partition: int, layout: Layout, records: Records, counts: JoinCounts | None
) -> pa.RecordBatch:
    """Records of one partition as the view shows them."""
    import numpy as np
    import pyarrow as pa

    if view.given:
        _require_fit(layout, records)
    keys, values = layout.decode(records)
    if counts is not None:
        index = keys.field(len(keys.type) - 1).to_numpy(False)
        shown_keys, shown = view.reading.show(keys, values)
        mask = pa.array(counts.keeps(shown_keys, view.key_type, index))
        keys, values = shown_keys.filter(mask), shown.filter(mask)
    else:
        keys, values = view.reading.show(keys, values)
    numbers = pa.array(np.full(len(keys), partition, np.int32))
    return pa.RecordBatch.from_arrays([numbers, keys, values], schema=view.arrow_schema)


def _require_fit(layout: Layout, records: Records) -> None:
    why = layout.misfit(records)
    if why is not None:
        raise MalformedFile(
            "the given key and value schemas do not fit the rows of the state",
            f"{why[0].upper()}{why[1:]}.",
            "Give --key-schema the columns that the query groups by and --value-schema those "
            "that it keeps for each key, in the query's order and with its types.",
        )


def plain_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = batch.schema.names
    columns = [[plain(value) for value in column] for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


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
    """Return the same view over some of its partitions."""
    return replace(view, partitions=partitions)
