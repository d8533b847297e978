"""Finds the stores of an operator that a rewrite must write, and whether it can.

The partition of each key is compared with the partition that Spark's hash gives. A state with an
unknown layout is refused; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import store_folder
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import FloodmarkError, NoAnswer, WouldLose
from floodmark.state.files.conversion import Conversion
from floodmark.state.keys.grouping import Grouping, grouping_of
from floodmark.state.rows.rowbytes import gather
from floodmark.state.shapes.operators import Shape
from floodmark.statestore.open import open_state
from floodmark.statestore.store import OpenedPartition, StoreAt, named
from floodmark.statestore.view import StateView
from floodmark.statestore.write import HDFS, ROCKSDB
from floodmark.storage.files import Files

if TYPE_CHECKING:
    from floodmark.state.files.records import Records


@dataclass(frozen=True)
class StoreToRewrite:
    """One store of an operator, with the meaning of its rows."""

    at: StoreAt
    partitions: tuple[int, ...]
    views: tuple[StateView, ...] = field(repr=False)
    """One view for each column family, or a single one."""

    @property
    def name(self) -> str:
        return self.at.store

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        return tuple(grouping_of(view.reading) for view in self.views)

    @property
    def is_keyless(self) -> bool:
        return all(grouping.is_keyless for grouping in self.groupings)


def stores_of(
    files: Files, checkpoint: Checkpoint, operator: int, batch: int
) -> tuple[StoreToRewrite, ...]:
    """Return every store of an operator after a batch."""
    first = open_state(files, checkpoint, operator, None, batch)
    views = [open_state(files, checkpoint, operator, name, batch) for name in first.stores]
    plain = [view for view in views if view.reading.shape is not Shape.JOIN]
    for view in plain:
        if view.reading.schema is None:
            raise NoAnswer(
                f"operator {operator}, store {view.store}: its rows have no schema",
                "Spark before 3.1 wrote none, so it is not known which part of a key decides "
                "its partition.",
                "Run the query once on Spark 3.1 or later, which writes it.",
            )
    folders = dict.fromkeys(view.reading.folder for view in plain)
    found = []
    for folder in folders:
        mine = tuple(view for view in plain if view.reading.folder == folder)
        store = StoreToRewrite(mine[0].at, mine[0].partitions, mine)
        found.append(replace(store, partitions=(0,)) if store.is_keyless else store)
    return tuple(found)


def require_rewritable(
    stores: tuple[StoreToRewrite, ...], provider: str, moves: bool = True
) -> None:
    """Check the first rows of every store, so that refusals come before any change.

    `moves` is False if keys stay in their partitions, wherever Spark's hash would put them.
    """
    for store in stores:
        if provider == HDFS and any(view.reading.family is not None for view in store.views):
            name = store.views[0].operator_name or f"operator {store.at.operator}"
            raise NoAnswer(
                f"{name} keeps column families, which only RocksDB has",
                "transformWithState and joins of format 3 and 4 cannot run on "
                "HDFSBackedStateStoreProvider.",
                "Keep this state in RocksDB.",
            )
        for partition in store.partitions:
            with store.at.open(partition) as opened:
                records = next(iter(opened.records()), None)
                if records is not None and len(records):
                    hashes = hashes_in(store, opened, partition, records)
                    if moves:
                        require_at_home(store, partition, hashes)
                    break


def has_zips_of_spark_4_0(store: StoreToRewrite) -> bool:
    """Whether Spark 4.0 wrote the zips: with unique ids they say v2, and it reads no others."""
    if not store.at.unique_ids:
        return False
    from floodmark.state.files.rocksdb import read_snapshot

    for partition in store.partitions:
        base = store.at.chain(partition).snapshot
        if base is not None:
            with named(base.path):
                return read_snapshot(store.at.read(base.path)).version == 2
    # There are only changelogs so far: later Sparks write a checksum beside each.
    return not store.at.checksums


def hashes_in(
    store: StoreToRewrite, opened: OpenedPartition, partition: int, records: Records
) -> Any:
    """Return the hash of every row's key; raise if a row is of an unknown family."""
    import numpy as np

    hashes = np.zeros(len(records), np.int64)
    known = np.zeros(len(records), bool)
    for view, grouping in zip(store.views, store.groupings, strict=True):
        layout = view.layout(opened)
        rows: Any = slice(None)
        keys = records.keys
        if layout.family is not None:
            rows = np.nonzero(gather(keys.data, keys.starts, "<i2") == layout.family)[0]
            keys = keys.take(rows).skip(2)
        known[rows] = True
        if len(keys) and not grouping.is_keyless:
            found = grouping.hashes(layout.decode_keys(keys)).view("i4")
            hashes[rows] = found.astype(np.int64)
    _require_known(store, partition, bool(known.all()))
    return hashes


def require_at_home(store: StoreToRewrite, partition: int, hashes: Any) -> None:
    """Refuse rows that are not where their hash says: then the deciding columns are unknown."""
    if not store.is_keyless and bool((hashes % len(store.partitions) != partition).any()):
        raise misplaced(store.views[0], partition)


def _require_known(store: StoreToRewrite, partition: int, known: bool) -> None:
    if not known:
        raise WouldLose(
            f"{store_folder(store.at.operator, partition, store.name)} has rows of a column "
            "family that is in no schema",
            "A rewrite would leave these rows behind.",
            "Run the query once more, so that Spark writes its schemas and a snapshot.",
        )


def misplaced(view: StateView, partition: int) -> FloodmarkError:
    name = view.operator_name or f"operator {view.at.operator}"
    return WouldLose(
        f"{name}: keys of partition {partition} are not in the partition that Spark's hash gives",
        "The query is not partitioned by its whole keys (Spark before 3.3 allowed that), or "
        "Spark did not write this state.",
        "Keep the number of partitions.",
    )


def conversion_of(store: StoreToRewrite, opened: OpenedPartition, provider: str) -> Conversion:
    layout = store.views[0].layout(opened)
    rocksdb = provider == ROCKSDB
    other = replace(layout, rocksdb=rocksdb, row_checksums=store.at.row_checksums and rocksdb)
    return Conversion(layout, other)


def families_of(store: StoreToRewrite) -> dict[str, int]:
    """Return column families with their numbers, which must be the same in every partition."""
    numbers: dict[str, int] = {}
    if store.at.provider != ROCKSDB or store.views[0].reading.family is None:
        return numbers
    from floodmark.state.files.rocksdb import read_snapshot

    for partition in store.partitions:
        base = store.at.chain(partition).snapshot
        if base is None:
            continue
        with named(base.path):
            snapshot = read_snapshot(store.at.read(base.path))
        found = snapshot.families
        both = {**numbers, **found}
        if any(both[name] != number for name, number in numbers.items()) or len(
            set(both.values())
        ) != len(both):
            raise WouldLose(
                f"operator {store.at.operator}: the partitions number their column families "
                "differently",
                "A rewrite would read rows of one family as rows of another.",
                "Run the query once more, so that Spark writes a snapshot of every partition.",
            )
        numbers = both
    return numbers
