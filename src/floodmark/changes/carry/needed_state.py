"""The state that a batch's successor starts from: which files it is, and that all are there.

Batch N writes state version N + 1, so going on after batch N needs version N + 1 of
every partition of every store: a snapshot, or none, and the changes after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.checkpoint.commits import StateIds
from floodmark.checkpoint.layout import DEFAULT_STORE, FileInfo, StateFile, store_folder
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.partitions import partition_count
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import BatchPurged, MalformedFile
from floodmark.statestore.chain import StateChain, StateFileMissing, chain_of

if TYPE_CHECKING:
    from floodmark.state.files.rocksdb import RocksSnapshot

Read = Callable[[RelativePath], bytes]
# The order in which a join's stores stand in a commit's unique ids.
_JOIN_STORES = (
    "left-keyToNumValues",
    "left-keyWithIndexToValue",
    "right-keyToNumValues",
    "right-keyWithIndexToValue",
)


@dataclass(frozen=True)
class StoreState:
    """One store of one partition, at one version."""

    operator: int
    partition: int
    store: str
    chain: StateChain
    tables: tuple[FileInfo, ...]
    """RocksDB: the SSTs and archived logs that the snapshot names."""

    @property
    def folder(self) -> str:
        return store_folder(self.operator, self.partition, self.store)

    @property
    def files(self) -> tuple[StateFile, ...]:
        base = (self.chain.snapshot,) if self.chain.snapshot else ()
        return (*base, *self.chain.changes)


class StateGone(BatchPurged):
    """The state of that batch cannot be put together any more."""


def needed_state(checkpoint: Checkpoint, batch: int, read: Read) -> tuple[StoreState, ...]:
    """Every store at the version that batch + 1 starts from; raises where one is incomplete."""
    stores = _by_store(checkpoint.state_files)
    ids = commit.state_unique_ids if (commit := checkpoint.commits.get(batch)) else {}
    sizes = {file.path: file.size for file in checkpoint.files if file.path.startswith("state/")}
    found = []
    for operator in checkpoint.state_operators:
        count = partition_count(
            checkpoint,
            operator.operator,
            batch,
            {partition for number, partition, _ in stores if number == operator.operator},
            operator.operator in checkpoint.keyed,
        )
        count.require()
        for partition in range(count.needed):
            for store in operator.stores or (DEFAULT_STORE,):
                files = stores.get((operator.operator, partition, store), [])
                found.append(
                    _store((operator.operator, partition, store), files, batch, ids, read, sizes)
                )
    return tuple(found)


def _by_store(files: Iterable[StateFile]) -> dict[tuple[int, int, str], list[StateFile]]:
    stores: dict[tuple[int, int, str], list[StateFile]] = defaultdict(list)
    for file in files:
        stores[file.operator, file.partition, file.store].append(file)
    return stores


def _store(
    place: tuple[int, int, str],
    files: list[StateFile],
    batch: int,
    ids: StateIds,
    read: Read,
    sizes: dict[str, int],
) -> StoreState:
    operator, partition, store = place
    folder = store_folder(operator, partition, store)
    unique_id = _unique_id(ids, place)
    provider = max(files, key=lambda file: file.version).provider if files else "hdfs"
    try:
        chain = chain_of(files, provider, batch + 1, unique_id, folder, _lineage(read))
        tables = _tables(folder, chain, read, sizes)
    except (BatchPurged, StateFileMissing) as error:
        raise StateGone(
            f"the state of batch {batch} is not whole: {error.what}", error.why, error.do
        ) from None
    return StoreState(operator, partition, store, chain, tables)


def _unique_id(ids: StateIds, place: tuple[int, int, str]) -> str | None:
    operator, partition, store = place
    if operator not in ids or partition >= len(ids[operator]):
        return None
    known = ids[operator][partition]
    if len(known) == len(_JOIN_STORES) and store in _JOIN_STORES:
        return known[_JOIN_STORES.index(store)]
    return known[0] if known else None


def _lineage(read: Read) -> Callable[[StateFile], tuple[tuple[int, str], ...]]:
    def lineage(file: StateFile) -> tuple[tuple[int, str], ...]:
        from floodmark.state.files.rocksdb import parse_changelog

        return tuple(parse_changelog(read(RelativePath(file.path))).lineage)

    return lineage


def _tables(
    folder: str, chain: StateChain, read: Read, sizes: dict[str, int]
) -> tuple[FileInfo, ...]:
    if chain.snapshot is None or chain.snapshot.kind != "zip":
        return ()
    snapshot = named_snapshot(chain.snapshot.path, read)
    named = [(f"{folder}/SSTs/{table.stored}", table.size) for table in snapshot.tables]
    named += [(f"{folder}/logs/{log.stored}", log.size) for log in snapshot.logs]
    for path, size in named:
        if sizes.get(path) != size:
            there = f"has {sizes[path]} bytes, not {size}" if path in sizes else "is missing"
            raise StateFileMissing(
                f"{path} {there}",
                f"{chain.snapshot.path} names it.",
                "Restore the file from a backup, or choose another batch.",
            )
    return tuple(FileInfo(path, size) for path, size in named)


def named_snapshot(path: str, read: Read) -> RocksSnapshot:
    """What a RocksDB snapshot says of itself; a damaged one is named."""
    from floodmark.state.files.rocksdb import read_snapshot

    try:
        return read_snapshot(read(RelativePath(path)))
    except MalformedFile as error:
        raise MalformedFile(
            f"{path} cannot be read: {error.what}",
            error.why,
            "Restore the file from a backup, or choose another batch; `floodmark doctor "
            "--read-data` finds what else is damaged.",
        ) from None


def whole_in_flight(checkpoint: Checkpoint, in_flight: int | None, read: Read) -> int | None:
    """The batch in flight, where all of its state was written before it was stopped.

    A sink that has the batch does not compute it again: then its state must be there.
    """
    if in_flight is None:
        return None
    try:
        needed_state(checkpoint, in_flight, read)
    except StateGone:
        return None
    return in_flight


def computed_again(in_flight: int | None) -> tuple[str, ...]:
    """With unique ids a batch that is not committed has none that anybody knows."""
    if in_flight is None:
        return ()
    return (
        f"Batch {in_flight} has to be computed again: with unique ids Spark takes no state that "
        "a commit does not name. A sink that has the batch and skips it stops the query, on the "
        "old checkpoint as well; write over it there, or let the old code finish the batch first.",
    )
