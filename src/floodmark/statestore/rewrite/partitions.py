"""An operator's state written again: over other partitions, by another provider, with
unique ids or without.

Rows pass as bytes; only what says where a key belongs is decoded. Where a key lies now is
compared with where Spark's hash puts it: a state that is laid out in a way not known here
is refused, never guessed at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.conf_keys import STATE_CODEC
from floodmark.checkpoint.layout import JOIN_STORES, state_files, store_folder
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import FloodmarkError, NoAnswer, StoppedMidway, WouldLose
from floodmark.state.files.conversion import Conversion
from floodmark.state.files.rocksdb import read_snapshot
from floodmark.state.keys.grouping import Grouping, grouping_of
from floodmark.state.rows.rowbytes import gather
from floodmark.state.shapes.operators import Shape
from floodmark.state.shapes.tally import Tally, tally
from floodmark.statestore.open import open_state
from floodmark.statestore.rewrite.sorted_runs import Runs
from floodmark.statestore.store import OpenedPartition, StoreAt, named
from floodmark.statestore.view import StateView
from floodmark.statestore.write import HDFS, ROCKSDB, StoreFormat, write_store
from floodmark.storage.files import Files, WritableFiles

if TYPE_CHECKING:
    from floodmark.state.files.records import Records

CODEC = STATE_CODEC


@dataclass(frozen=True)
class RewriteTarget:
    """What an operator's state is to be."""

    version: int
    partitions: int | None
    """None: as many as it has."""
    provider: str
    unique_ids: tuple[tuple[str, ...], ...] | None = None
    """By partition, in the order of the commit log."""

    def count(self, store: StoreToRewrite) -> int:
        return 1 if store.is_keyless else self.partitions or len(store.partitions)

    def unique_id(self, partition: int, store: str) -> str | None:
        if self.unique_ids is None:
            return None
        ids = self.unique_ids[partition]
        return ids[JOIN_STORES.index(store)] if len(ids) > 1 else ids[0]


@dataclass(frozen=True)
class StoreToRewrite:
    """One store of an operator, with everything that its rows mean."""

    at: StoreAt
    partitions: tuple[int, ...]
    views: tuple[StateView, ...] = field(repr=False)
    """One a column family, or the one there is."""

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
    """Every store of an operator after a batch."""
    first = open_state(files, checkpoint, operator, None, batch)
    views = [open_state(files, checkpoint, operator, name, batch) for name in first.stores]
    plain = [view for view in views if view.reading.shape is not Shape.JOIN]
    for view in plain:
        if view.reading.schema is None:
            raise NoAnswer(
                f"operator {operator}, store {view.store}: there is no schema of its rows",
                "Spark before 3.1 wrote none, so nobody can tell which part of a key says "
                "where it belongs.",
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
    """Looks at the first rows of every store: what cannot be done is said before it is begun.

    `moves` is False where keys stay in their partitions, wherever Spark's hash would put them.
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
                    hashes = _hashes(store, opened, partition, records)
                    if moves:
                        _require_at_home(store, partition, hashes)
                    break


def rewrite_store(
    store: StoreToRewrite, target: WritableFiles, goal: RewriteTarget, conf: Mapping[str, str]
) -> Tally:
    """Writes one store; gives the tally of its rows as they were read."""
    style = style_of(store, goal, conf)
    count = goal.count(store)
    if not moves_rows(store, goal):
        parts = (rewrite_partition(store, at, target, goal, style) for at in store.partitions)
        return sum(parts, Tally())
    total = Tally()
    with tempfile.TemporaryDirectory(prefix="floodmark-runs-") as place:
        runs = Runs(Path(place, "runs"), count)
        for partition in store.partitions:
            for records, hashes in placed_rows(store, partition):
                runs.add(records, hashes % count)
                total += tally(records)
        runs.close()
        for partition in range(count):
            write_partition(store, partition, runs.rows(partition), target, goal, style)
    return total


def moves_rows(store: StoreToRewrite, goal: RewriteTarget) -> bool:
    """True where rows go to other partitions; else each stays what it is, in other files."""
    return not store.is_keyless and goal.count(store) != len(store.partitions)


def style_of(store: StoreToRewrite, goal: RewriteTarget, conf: Mapping[str, str]) -> StoreFormat:
    families, internal = _families(store)
    codec = conf.get(CODEC, "lz4")
    zips = 2 if goal.unique_ids is not None and _is_of_spark_4_0(store) else 1
    return StoreFormat(goal.provider, codec, store.at.row_checksums, families, internal, zips)


def _is_of_spark_4_0(store: StoreToRewrite) -> bool:
    """Its zips say v2 where state has unique ids, and it reads no others; later Sparks say v1."""
    if not store.at.unique_ids:
        return False
    for partition in store.partitions:
        base = store.at.chain(partition).snapshot
        if base is not None:
            with named(base.path):
                return read_snapshot(store.at.read(base.path)).version == 2
    # Only changelogs yet: later Sparks leave a checksum beside each.
    return not store.at.checksums


def write_partition(
    store: StoreToRewrite,
    partition: int,
    rows: Iterable[Records],
    target: WritableFiles,
    goal: RewriteTarget,
    style: StoreFormat,
) -> None:
    folder = store_folder(store.at.operator, partition, store.name)
    unique = goal.unique_id(partition, store.name)
    write_store(target, folder, goal.version, rows, style, unique)


def rewrite_partition(
    store: StoreToRewrite,
    partition: int,
    target: WritableFiles,
    goal: RewriteTarget,
    style: StoreFormat,
) -> Tally:
    """One partition that stays what it is."""
    with (
        named(store_folder(store.at.operator, partition, store.name)),
        store.at.open(partition) as opened,
    ):
        conversion = conversion_of(store, opened, goal.provider)
        counted = Counting(opened.records())
        rows = (conversion.forth(records) for records in counted)
        write_partition(store, partition, rows, target, goal, style)
    return counted.total


class Counting:
    """Rows that are tallied while they pass."""

    def __init__(self, rows: Iterator[Records]) -> None:
        self._rows = rows
        self.total = Tally()

    def __iter__(self) -> Iterator[Records]:
        for records in self._rows:
            self.total += tally(records)
            yield records


def placed_rows(store: StoreToRewrite, partition: int) -> Iterator[tuple[Records, Any]]:
    """A partition's rows in pieces, and Spark's hash of each one's key."""
    with (
        named(store_folder(store.at.operator, partition, store.name)),
        store.at.open(partition) as opened,
    ):
        for records in opened.records():
            if len(records):
                hashes = _hashes(store, opened, partition, records)
                _require_at_home(store, partition, hashes)
                yield records, hashes


def _hashes(
    store: StoreToRewrite, opened: OpenedPartition, partition: int, records: Records
) -> Any:
    """The hash of every row's key, once it is sure that every row is of a known family."""
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


def _require_at_home(store: StoreToRewrite, partition: int, hashes: Any) -> None:
    """Every row must lie where its hash says, or nobody knows what decides it."""
    if not store.is_keyless and bool((hashes % len(store.partitions) != partition).any()):
        raise misplaced(store.views[0], partition)


def _require_known(store: StoreToRewrite, partition: int, known: bool) -> None:
    if not known:
        raise WouldLose(
            f"{store_folder(store.at.operator, partition, store.name)} has rows of a column "
            "family that no schema tells of",
            "They would be left behind.",
            "Run the query once more, so that Spark writes its schemas and a snapshot.",
        )


def misplaced(view: StateView, partition: int) -> FloodmarkError:
    name = view.operator_name or f"operator {view.at.operator}"
    return WouldLose(
        f"{name}: keys of partition {partition} do not lie where Spark's hash puts them",
        "The query is partitioned by something else than the whole of its keys (Spark before "
        "3.3 allowed it), or this state is not Spark's own.",
        "Keep the number of partitions.",
    )


def conversion_of(store: StoreToRewrite, opened: OpenedPartition, provider: str) -> Conversion:
    layout = store.views[0].layout(opened)
    rocksdb = provider == ROCKSDB
    other = replace(layout, rocksdb=rocksdb, row_checksums=store.at.row_checksums and rocksdb)
    return Conversion(layout, other)


def _families(store: StoreToRewrite) -> tuple[Mapping[str, int], frozenset[str]]:
    """Column families by their numbers, which must be the same in every partition."""
    numbers: dict[str, int] = {}
    internal: frozenset[str] = frozenset()
    if store.at.provider != ROCKSDB or store.views[0].reading.family is None:
        return numbers, internal
    for partition in store.partitions:
        base = store.at.chain(partition).snapshot
        if base is None:
            continue
        with named(base.path):
            snapshot = read_snapshot(store.at.read(base.path))
        found = snapshot.families
        internal |= snapshot.internal
        both = {**numbers, **found}
        if any(both[name] != number for name, number in numbers.items()) or len(
            set(both.values())
        ) != len(both):
            raise WouldLose(
                f"operator {store.at.operator}: its partitions number their column families "
                "differently",
                "Rows of one family would be taken for another's.",
                "Run the query once more, so that Spark writes a snapshot of every partition.",
            )
        numbers = both
    return numbers, internal


def check_store(store: StoreToRewrite, target: Files, goal: RewriteTarget, expected: Tally) -> None:
    """Reads back what was written, and compares it with what was read."""
    parts = (tally_written(store, at, target, goal) for at in range(goal.count(store)))
    compare(store, expected, sum(parts, Tally()))


def tally_written(
    store: StoreToRewrite, partition: int, target: Files, goal: RewriteTarget
) -> Tally:
    """Of one partition that was written, its rows as the old store had them."""
    folder = store_folder(store.at.operator, partition, store.name)
    listed = [file for file in state_files(target.list(folder).files) if file.store == store.name]
    unique = goal.unique_id(partition, store.name)
    written = replace(
        store.at,
        files=target,
        version=goal.version,
        provider=goal.provider,
        listed={partition: tuple(listed)},
        unique_ids={partition: unique} if unique else {},
        checksums=frozenset(),
    )
    with written.open(partition) as opened:
        back = _back(store, opened)
        return sum((tally(back.back(records)) for records in opened.records()), Tally())


def tally_read(store: StoreToRewrite, partition: int) -> Tally:
    with store.at.open(partition) as opened:
        return sum((tally(records) for records in opened.records()), Tally())


def compare(store: StoreToRewrite, expected: Tally, found: Tally) -> None:
    if found != expected:
        raise StoppedMidway(
            f"operator {store.at.operator}, store {store.name}: what was written is not what "
            "was read",
            f"read    {expected.rows} rows, checksum {expected.checksum}\n"
            f"written {found.rows} rows, checksum {found.checksum}",
            "Repeat the command; if it happens again, storage does not keep what it is given.",
        )


def _back(store: StoreToRewrite, opened: OpenedPartition) -> Conversion:
    """From the store's own form to that of the written one."""
    view = store.views[0]
    theirs = view.layout(opened)
    rocksdb = store.at.provider == ROCKSDB
    ours = replace(theirs, rocksdb=rocksdb, row_checksums=store.at.row_checksums and rocksdb)
    return Conversion(ours, theirs)
