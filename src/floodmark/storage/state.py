"""The state of an operator after a batch, opened without Spark.

`open_state` finds what there is to read and what it means; the rows come a partition at
a time, in pieces, so that a state larger than memory can be exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.commits import parse_commit
from floodmark.checkpoint.layout import (
    DEFAULT_STORE,
    FileInfo,
    StateFile,
    operator_metadata_paths,
    state_files,
    store_folder,
)
from floodmark.checkpoint.model import PROVIDER_CLASS, SHUFFLE_PARTITIONS, Checkpoint
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.checkpoint.operators import OperatorMetadata, parse_operator_metadata
from floodmark.errors import FloodmarkError, NoAnswer, WrongUse
from floodmark.state.layout import BYTES, Layout
from floodmark.state.operators import JOIN_STORES, JoinCounts, Reading, Shape, readings
from floodmark.state.partitioning import partition_of
from floodmark.state.schema import PLAIN, ColumnFamily, StateSchema, parse_schema
from floodmark.state.types import Atom, Struct, arrow_type, ddl, distinct
from floodmark.state.unsafewrite import encode_rows
from floodmark.state.values import coerce, plain
from floodmark.storage.files import Files
from floodmark.storage.state_chain import StatePurged
from floodmark.storage.state_store import OpenedPartition, StoreAt, named

if TYPE_CHECKING:
    import pyarrow as pa

    from floodmark.state.records import Records

ROW_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
MERGE_VERSION = "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion"
_PROVIDERS = ("HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider")
_HINT = (
    "Spark wrote no schema, so the rows are bytes. Give one: --key-schema 'name STRING'"
    " --value-schema 'count BIGINT' (in Python: schema=(…, …)), or run the query once on"
    " Spark 3.1 or later, which writes it."
)


class UnknownProvider(FloodmarkError):
    """The state is kept by a class that is not Spark's own."""

    status = 3


class KeyNotThere(NoAnswer):
    """The state knows nothing of that key."""


@dataclass(frozen=True)
class PartitionStats:
    partition: int
    keys: int
    bytes: int


@dataclass(frozen=True)
class StateStats:
    keys: int
    bytes: int
    partitions: tuple[PartitionStats, ...]
    skew: float | None
    """The fullest partition's keys over the mean; None where there are no keys."""


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
        return _HINT if self.reading.schema is None else ""

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
        for partition in self.partitions:
            yield from self.partition_batches(partition)

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

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Rows as plain JSON data."""
        found: list[dict[str, Any]] = []
        for batch in self.batches():
            room = batch.num_rows if limit is None else limit - len(found)
            found += plain_rows(batch.slice(0, room))
            if limit is not None and len(found) >= limit:
                break
        return found

    def lookup(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of one key; a list and a map have several."""
        import pyarrow as pa

        wanted = pa.array([coerce(key, self.key_type)], arrow_type(self.key_type))
        for partition in self._likely_first(wanted):
            found = self._lookup_in(partition, wanted)
            if found:
                return found
        raise KeyNotThere(
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
        from floodmark.storage.state_export import export_parquet

        return export_parquet(self.batches(), self.arrow_schema, path)

    def layout(self, opened: OpenedPartition) -> Layout:
        return _layout(self.reading, opened, self.avro, self.written)

    def _counts(self, partition: int) -> JoinCounts | None:
        reading = self.reading.counts
        if reading is None or reading.schema is None or self.counts_at is None:
            return None
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

    def _partition_stats(self, partition: int) -> PartitionStats:
        with self.at.open(partition) as opened:
            layout = self.layout(opened)
            keys = size = 0
            for records in opened.records():
                mine = layout.mine(records)
                keys += len(mine)
                size += mine.keys.size + mine.values.size
        return PartitionStats(partition, keys, size)

    def _likely_first(self, wanted: pa.Array) -> list[int]:
        """Spark's hash says where the key should be; the others are looked at after it."""
        if self.reading.key is None or not self.partitions:
            return list(self.partitions)
        encoding = self.reading.schema.encoding if self.reading.schema else PLAIN
        key = self.key_type
        if self.reading.shape is Shape.PAIRS and encoding.prefix_columns:
            key = Struct(key.fields[: encoding.prefix_columns])
        likely = partition_of(wanted[0], key, len(self.partitions))
        return sorted(self.partitions, key=lambda partition: partition != likely)

    def _lookup_in(self, partition: int, wanted: pa.Array) -> list[dict[str, Any]]:
        with self.at.open(partition) as opened:
            layout = self.layout(opened)
            if self.reading.shape in (Shape.PAIRS, Shape.LIST):
                encoded = layout.encode_key(wanted[0].as_py()) if _is_exact(wanted) else None
                if encoded is not None:
                    found = opened.get(encoded)
                    if found is None:
                        return []
                    return plain_rows(self._batch(partition, layout, found, None))
        return self._search(partition, wanted)

    def _search(self, partition: int, wanted: pa.Array) -> list[dict[str, Any]]:
        """Every row is compared, by its key's bytes."""
        import numpy as np

        from floodmark.state.keyset import hash_rows

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


def open_state(
    files: Files,
    checkpoint: Checkpoint,
    operator: int = 0,
    store: str | None = None,
    batch: int | None = None,
    schema: tuple[str, str] | None = None,
) -> StateView:
    """The state of an operator after a batch: by default the last committed one.

    `store` is a store, a join's side (`left`, `right`), a state variable or `timers`;
    `schema` gives key and value (DDL or Spark's JSON) where the checkpoint has no schema.
    """
    listed = _listing(files, checkpoint, operator)
    found = [file for file in state_files(listed) if file.operator == operator]
    if not found:
        raise _no_such_operator(checkpoint, operator)
    number = _batch(checkpoint, found, batch)
    conf = _conf(files, checkpoint, number)
    _check_provider(conf)
    metadata = _metadata(files, listed, operator, number)
    stores = tuple(sorted({file.store for file in found}))
    schemas, written = _schemas(files, listed, operator, stores, metadata, number)
    if schema is not None:
        schemas = {name: _given(schema) for name in stores}
    prefix = metadata.stores[0].num_cols_prefix_key if metadata and metadata.stores else 0
    properties = metadata.properties_json if metadata else ""
    choices = readings(stores, schemas, properties, prefix)
    reading = _choose(choices, store, operator)
    partitions = _partitions(conf, reading.key, found, number)
    crcs = frozenset(
        file.path for file in listed if file.path.endswith(".crc") and "/." not in file.path
    )
    unique = _unique_ids(files, checkpoint, operator, number)

    def at(folder: str) -> StoreAt:
        mine = [file for file in found if file.store == folder]
        return StoreAt(
            files,
            operator,
            folder,
            number + 1,
            max(mine, key=lambda file: file.version).provider if mine else "hdfs",
            {p: tuple(f for f in mine if f.partition == p) for p in partitions},
            {p: ids for p in partitions if (ids := _id_of(unique, p, folder))},
            crcs,
            conf.get(ROW_CHECKSUMS, "false").lower() == "true",
            b"" if conf.get(MERGE_VERSION, "1") == "2" else b",",
        )

    return StateView(
        operator,
        metadata.operator_name if metadata else None,
        reading.name,
        tuple(choice.name for choice in choices),
        number,
        partitions,
        reading,
        at(reading.folder),
        at(reading.counts.folder) if reading.counts else None,
        reading.family is not None and conf.get(ENCODING, "unsaferow").lower() == "avro",
        written.get(reading.family or ""),
    )


def _listing(files: Files, checkpoint: Checkpoint, operator: int) -> tuple[FileInfo, ...]:
    if checkpoint.complete:
        prefix = f"state/{operator}/"
        return tuple(file for file in checkpoint.files if file.path.startswith(prefix))
    listing = files.list(f"state/{operator}")
    return listing.files


def _no_such_operator(checkpoint: Checkpoint, operator: int) -> FloodmarkError:
    known = [str(one.operator) for one in checkpoint.state_operators]
    if not known:
        return NoAnswer(
            f"{checkpoint.path} has no state",
            "Its query keeps none: only aggregations, joins, deduplication and the like do.",
        )
    if str(operator) in known:
        return NoAnswer(
            f"operator {operator} has no state yet", "No batch of it has come to its end."
        )
    return WrongUse(f"{checkpoint.path} has no operator {operator}", f"It has {', '.join(known)}.")


def _batch(checkpoint: Checkpoint, found: list[StateFile], batch: int | None) -> int:
    if batch is None:
        if checkpoint.committed_batch is not None:
            return checkpoint.committed_batch
        # Spark 2.1 kept no commit log: the newest version that every partition has.
        newest: dict[int, int] = {}
        for file in found:
            newest[file.partition] = max(newest.get(file.partition, 0), file.version)
        return min(newest.values()) - 1
    if batch < 0:
        raise WrongUse(f"there is no batch {batch}", "Batches are numbered from 0.")
    last = max(file.version for file in found) - 1
    if batch > last:
        raise NoAnswer(
            f"batch {batch} has left no state yet", f"The newest state is that of batch {last}."
        )
    if (
        checkpoint.commit_ids
        and batch < checkpoint.commit_ids[0]
        and batch not in checkpoint.offset_ids
    ):
        raise StatePurged(
            f"batch {batch} is not in the log any more",
            f"The oldest batch still logged is {checkpoint.commit_ids[0]}.",
            "Choose a later batch.",
        )
    return batch


def _conf(files: Files, checkpoint: Checkpoint, batch: int) -> Mapping[str, str]:
    entry = checkpoint.offsets.get(batch)
    if entry is None and batch in checkpoint.offset_ids:
        with named(f"offsets/{batch}"):
            entry = parse_offsets(files.read(f"offsets/{batch}"))
    if entry is None or entry.metadata is None:
        return checkpoint.conf
    return entry.metadata.conf


def _check_provider(conf: Mapping[str, str]) -> None:
    provider = conf.get(PROVIDER_CLASS)
    if provider is not None and not provider.endswith(_PROVIDERS):
        raise UnknownProvider(
            f"the state is kept by {provider}",
            "Only Spark's own HDFSBackedStateStoreProvider and RocksDBStateStoreProvider are"
            " known; another class may encrypt or lay out its files as it likes.",
            "Read it with Spark and that class on its class path.",
        )


def _metadata(
    files: Files, listed: tuple[FileInfo, ...], operator: int, batch: int
) -> OperatorMetadata | None:
    for path in operator_metadata_paths(listed, operator, batch):
        with named(path):
            return parse_operator_metadata(files.read(path))
    return None


def _schemas(
    files: Files,
    listed: tuple[FileInfo, ...],
    operator: int,
    stores: tuple[str, ...],
    metadata: OperatorMetadata | None,
    batch: int,
) -> tuple[dict[str, StateSchema], dict[str, dict[int, Struct]]]:
    """Each store's schema, and every value schema by column family and id."""
    there = {file.path for file in listed}
    schemas: dict[str, StateSchema] = {}
    written: dict[str, dict[int, Struct]] = {}
    for store in stores:
        paths = _evolved(there, operator, store, metadata, batch)
        if not paths:
            folder = store_folder(operator, 0, store)
            paths = [path for path in (f"{folder}/_metadata/schema",) if path in there]
        for path in paths:
            with named(path):
                schemas[store] = parse_schema(files.read(path))
            for family in schemas[store].families:
                written.setdefault(family.name, {})[family.value_id or 0] = family.value
    return schemas, written


def _evolved(
    there: set[str], operator: int, store: str, metadata: OperatorMetadata | None, batch: int
) -> list[str]:
    """The v3 schema files up to a batch, oldest first."""
    folder = f"state/{operator}/_stateSchema/{store}/"
    names = [path[len(folder) :] for path in there if path.startswith(folder)]
    dated = sorted(
        (int(head), name)
        for name in names
        if (head := name.split("_")[0]).isdecimal() and "/" not in name and int(head) <= batch
    )
    # The metadata's paths are absolute, and wrong once a checkpoint was moved: names do.
    known = [
        path.rsplit("/", 1)[1]
        for info in (metadata.stores if metadata else ())
        if info.store_name == store
        for path in info.schema_paths
        if "/" in path
    ]
    chosen = [name for name in known if name in {name for _, name in dated}]
    return [folder + name for name in chosen or [name for _, name in dated]]


def _given(schema: tuple[str, str]) -> StateSchema:
    from floodmark.state.ddl import struct_json

    return StateSchema(
        2, (ColumnFamily("default", struct_json(schema[0]), struct_json(schema[1])),)
    )


def _choose(choices: tuple[Reading, ...], store: str | None, operator: int) -> Reading:
    if not choices:
        raise NoAnswer(f"operator {operator} has no store that can be read")
    if store is None or (store == DEFAULT_STORE and len(choices) == 1):
        return choices[0]
    for choice in choices:
        if choice.name == store:
            return choice
    names = ", ".join(choice.name for choice in choices)
    raise WrongUse(f"operator {operator} has no store {store!r}", f"It has {names}.")


def _partitions(
    conf: Mapping[str, str], key: Struct | None, found: list[StateFile], batch: int
) -> tuple[int, ...]:
    declared = conf.get(SHUFFLE_PARTITIONS, "")
    there = {file.partition for file in found if file.version <= batch + 1}
    if there == {0} and not _is_keyed(key):
        # A limit and a total over everything run in one task, whatever the conf says.
        return (0,)
    if declared.isdecimal() and int(declared) > 0:
        return tuple(range(int(declared)))
    # Spark 4.2's v2 offset log forgets the number in its first run; a folder without this
    # version is left from a repartition.
    return tuple(sorted(there))


def _is_keyed(key: Struct | None) -> bool:
    return key is not None and any(
        not (isinstance(field.type, Atom) and field.type.name == "void") for field in key.fields
    )


def _unique_ids(
    files: Files, checkpoint: Checkpoint, operator: int, batch: int
) -> tuple[tuple[str, ...], ...]:
    commit = checkpoint.commits.get(batch)
    if commit is None and batch in checkpoint.commit_ids:
        with named(f"commits/{batch}"):
            commit = parse_commit(files.read(f"commits/{batch}"))
    return commit.state_unique_ids.get(operator, ()) if commit else ()


def _id_of(ids: tuple[tuple[str, ...], ...], partition: int, store: str) -> str | None:
    if partition >= len(ids) or not ids[partition]:
        return None
    mine = ids[partition]
    if len(mine) == len(JOIN_STORES) and store in JOIN_STORES:
        return mine[JOIN_STORES.index(store)]
    return mine[0]


def with_partitions(view: StateView, partitions: tuple[int, ...]) -> StateView:
    """The same view over some of its partitions."""
    return replace(view, partitions=partitions)
