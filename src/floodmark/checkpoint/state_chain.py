"""Decides which state must exist, and how many partitions: one answer for every verb. Pure.

Batch N leaves state version N + 1 in every partition of every store of every operator. A version
consists of the last snapshot, if there is one, and every change after it. File names show which
files these are. With unique ids (checkpoint format 2) the commits show which files count, or the
lineage in a changelog, which a caller can pass if it can read it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.layout import (
    DEFAULT_STORE,
    JOIN_STORES,
    STATE,
    FileInfo,
    StateFile,
    store_folder,
)

if TYPE_CHECKING:
    from floodmark.checkpoint.model import Checkpoint

# Anybody may have written an offset entry: its pinned number must not become as many names.
_LISTED = 100
_DIGITS = 18
_BASES = ("snapshot", "zip")
Steps = Sequence[tuple[int, str]]
"""A lineage: versions and the unique ids of their files, beginning with the last snapshot."""
Lineage = Callable[[StateFile], Steps | None]
"""Returns the versions that a changelog continues; None if they are not known."""
Tables = Callable[[StateFile], tuple[FileInfo, ...]]
"""Returns the SSTs and logs that a RocksDB snapshot names, with their sizes."""


class Lack(Enum):
    """The reason why a version cannot be rebuilt."""

    FOLDER = "the folder holds no state file"
    FILE = "a file is missing"
    PURGED = "retention has removed the oldest files"


@dataclass(frozen=True)
class StoreChain:
    """One store of one partition, and the files that rebuild one version of it."""

    operator: int
    partition: int
    store: str
    version: int
    files: tuple[StateFile, ...] = ()
    """The base, if there is one, and the changes after it, oldest first."""
    missing: tuple[str, ...] = ()
    """The names of the missing files, oldest first."""
    lack: Lack | None = None
    tables: tuple[FileInfo, ...] = ()
    """RocksDB: the SSTs and archived logs that the snapshot names, if a caller asked for them."""

    @property
    def folder(self) -> str:
        return store_folder(self.operator, self.partition, self.store)

    @property
    def snapshot(self) -> StateFile | None:
        return self.files[0] if self.files and self.files[0].kind in _BASES else None

    @property
    def changes(self) -> tuple[StateFile, ...]:
        return self.files[1:] if self.snapshot else self.files

    @property
    def lacks_version(self) -> bool:
        """Whether the file of the version itself is missing, not just one that it builds on."""
        return any(name.split(".")[0].split("_")[0] == str(self.version) for name in self.missing)

    @property
    def begins_before_the_commits(self) -> bool:
        """Whether only a lineage can name the files before those that were found."""
        return bool(self.files) and not self.snapshot and self.files[0].version > 1

    @property
    def absent(self) -> str:
        """The missing folder or file, or the first and the last of several missing files."""
        if self.lack is Lack.FOLDER:
            return self.folder
        first, last = self.missing[0], self.missing[-1]
        return f"{self.folder}/{first}" if first == last else f"{self.folder}/{first} to {last}"

    def require(self) -> None:
        """Raises where the version cannot be rebuilt."""
        if self.lack is not None:
            from floodmark.checkpoint.state_errors import files_missing

            raise files_missing(self)


@dataclass(frozen=True)
class PartitionCount:
    """How many partitions the state of an operator must have after a batch."""

    operator: int
    batch: int | None
    """The batch whose entry pins the number."""
    needed: int
    """The number that the entry pins, else the number in the operator's metadata."""
    there: int
    """The highest partition that has a file, plus one."""

    @property
    def is_far_off(self) -> bool:
        """Whether too many partitions are missing to name each of them."""
        return self.needed > self.there + _LISTED

    @property
    def is_wild(self) -> bool:
        """Whether the number is not credible: far fewer have state, or Spark's Int cannot hold
        it.
        """
        return self.is_far_off and (self.there > 0 or self.needed >= 1 << 31)

    @property
    def listed(self) -> int:
        """How many partitions to look at one by one: all of them, unless they are far too many."""
        return min(self.needed, self.there + _LISTED)

    @property
    def words(self) -> str:
        pinned = f"offsets/{self.batch} pins" if self.batch is not None else "The checkpoint pins"
        has = "1 partition" if self.there == 1 else f"{self.there:,} partitions"
        return (
            f"{pinned} {SHUFFLE_PARTITIONS} to {self.needed:,}, but state/{self.operator} has {has}"
        )

    def require(self) -> None:
        if self.is_far_off:
            from floodmark.checkpoint.state_errors import partitions_missing

            raise partitions_missing(self)


def partition_count(
    checkpoint: Checkpoint,
    operator: int,
    version: int,
    oldest: Mapping[int, int],
    keyed: bool,
) -> PartitionCount:
    """Return how many partitions an operator needs at a version.

    `oldest`: partition → its oldest version; `keyed`: the state has keys.
    """
    batch = version - 1 if version > 0 else None
    # A limit, or an aggregation without keys, has one partition, whatever the entry pins.
    if set(oldest) == {0} and not keyed:
        return PartitionCount(operator, batch, 1, 1)
    early = [partition for partition, first in oldest.items() if first <= version]
    there = max(early or oldest, default=-1) + 1
    entry = None if batch is None else checkpoint.offsets.get(batch)
    named = batch if entry is not None else checkpoint.latest_batch
    entry = entry or checkpoint.latest_entry
    pinned = pinned_partitions(entry.metadata.conf) if entry and entry.metadata else None
    metadata = checkpoint.operators.get(operator)
    if pinned is None and metadata and metadata.stores:
        pinned = metadata.stores[0].num_partitions
    return PartitionCount(operator, named, pinned if pinned and pinned > 0 else there, there)


def pinned_partitions(conf: Mapping[str, str]) -> int | None:
    text = conf.get(SHUFFLE_PARTITIONS, "")
    if not (text.isascii() and text.isdecimal()):
        return None
    return int(text[:_DIGITS])


def oldest_versions(files: Iterable[StateFile]) -> dict[int, int]:
    """Return partition → the oldest version that it has a file of."""
    found: dict[int, int] = {}
    for file in files:
        found[file.partition] = min(file.version, found.get(file.partition, file.version))
    return found


def store_names(found: Collection[str], declared: Collection[str] = ()) -> tuple[str, ...]:
    """Return the stores that an operator must have, in the order of their ids in a commit.

    `found`: stores that have a file; `declared`: stores that the operator's metadata names.
    """
    names = {*found, *declared}
    if names & set(JOIN_STORES):
        names |= set(JOIN_STORES)
    return tuple(sorted(names)) or (DEFAULT_STORE,)


def unique_id(ids: Sequence[Sequence[str]], partition: int, store: str) -> str | None:
    """Return the id of a store's file, from the operator's ids in a commit; None for plain
    names.
    """
    mine = ids[partition] if partition < len(ids) else ()
    at = JOIN_STORES.index(store) if len(mine) > 1 and store in JOIN_STORES else 0
    return mine[at] if at < len(mine) else None


def next_batch(checkpoint: Checkpoint) -> int | None:
    """Return the batch that Spark runs at the next start, if the logs show it."""
    latest = checkpoint.latest_batch
    if latest is None:
        return None
    return latest + 1 if checkpoint.committed_batch == latest else latest


def missing_state(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return what is missing of the state that the next start needs, in sentences.

    Only file names are looked at.
    """
    if not checkpoint.complete or not checkpoint.state_operators:
        return ()
    index = StateIndex(checkpoint)
    version = next_batch(checkpoint) or 0
    far_off = index.far_off(version)
    found = [f"{count.words}." for count in far_off]
    named = {count.operator for count in far_off}
    lacking = [
        chain for chain in index.chains(version) if chain.lack and chain.operator not in named
    ]
    if lacking:
        others = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        found.append(f"{lacking[0].absent}{others}.")
    return tuple(found)


class StateIndex:
    """The state files by store, for looking up the chains of several versions."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        without: Collection[str] = (),
        keyed: Collection[int] = (),
        lineage: Lineage | None = None,
    ) -> None:
        """`without`: files to treat as missing; `keyed`: operators with keys."""
        self.checkpoint = checkpoint
        self.keyed = {*keyed, *checkpoint.keyed}
        self.lineage = lineage
        self.ids = {
            batch + 1: commit.state_unique_ids
            for batch, commit in checkpoint.commits.items()
            if commit.state_unique_ids
        }
        self.files: dict[tuple[int, int, str], list[StateFile]] = defaultdict(list)
        by_operator: dict[int, list[StateFile]] = defaultdict(list)
        for file in checkpoint.state_files:
            if file.path not in without:
                self.files[file.operator, file.partition, file.store].append(file)
            by_operator[file.operator].append(file)
        self.oldest = {one: oldest_versions(files) for one, files in by_operator.items()}

    def chains(self, version: int) -> tuple[StoreChain, ...]:
        """Return every store of every partition, at a version."""
        if version < 1:
            return ()  # version 0 is the empty store, and has no file
        return tuple(
            self._chain(operator.operator, partition, store, version)
            for operator in self.checkpoint.state_operators
            for partition in range(self.partition_count(operator.operator, version).listed)
            for store in operator.stores
        )

    def required(self, version: int, tables: Tables) -> tuple[StoreChain, ...]:
        """Return every store with all files that rebuild it; raise if something is missing."""
        for count in self.far_off(version):
            count.require()
        chains = self.chains(version)
        for chain in chains:
            chain.require()
        prefix = f"{STATE}/"
        sizes = {
            file.path: file.size for file in self.checkpoint.files if file.path.startswith(prefix)
        }
        return tuple(_with_tables(chain, tables, sizes) for chain in chains)

    def partition_count(self, operator: int, version: int) -> PartitionCount:
        """Return how many partitions the state of an operator must have at a version."""
        oldest = self.oldest.get(operator, {})
        return partition_count(self.checkpoint, operator, version, oldest, operator in self.keyed)

    def far_off(self, version: int) -> tuple[PartitionCount, ...]:
        """Return the operators that lack so many partitions that `chains` names only the first."""
        if version < 1:
            return ()
        counts = (
            self.partition_count(described.operator, version)
            for described in self.checkpoint.state_operators
        )
        return tuple(count for count in counts if count.is_far_off)

    def _chain(self, operator: int, partition: int, store: str, version: int) -> StoreChain:
        ids = {
            at: found
            for at, named in self.ids.items()
            if (found := unique_id(named.get(operator, ()), partition, store))
        }
        bare = StoreChain(operator, partition, store, version)
        files = self.files.get((operator, partition, store), [])
        return chain_of(bare, files, ids, self.lineage)


def _with_tables(chain: StoreChain, tables: Tables, sizes: Mapping[str, int]) -> StoreChain:
    base = chain.snapshot
    if base is None or base.kind != "zip":
        return chain
    named = tables(base)
    from floodmark.checkpoint.state_errors import table_cut, table_missing

    for table in named:
        if table.path not in sizes:
            raise table_missing(table.path)
        if sizes[table.path] != table.size:
            raise table_cut(table.path, sizes[table.path], table.size)
    return replace(chain, tables=named)


def chain_of(
    bare: StoreChain,
    files: Sequence[StateFile],
    ids: Mapping[int, str],
    lineage: Lineage | None = None,
) -> StoreChain:
    """Return `bare` with its files and the names of its missing files.

    `files`: all files in the store's folder; `ids`: version → the unique id of its files.
    """
    version = bare.version
    if version < 1:
        return bare
    there = _by_version(files, version, ids)
    newest = there.get((version, False))
    steps = None
    if lineage and newest and version in ids and (version, True) not in there:
        steps = lineage(newest)
    if steps is not None:
        ids = {**dict(steps), version: ids[version]}
        there = _by_version(files, version, ids)
    chain, missing = _walk(there, version, ids, _kind_of_change(files))
    least = min(ids, default=0)
    if steps is not None and least > 1 and not missing and chain[-1].kind not in _BASES:
        missing = [f"{_stem(least, ids)}.zip"]
    return replace(
        bare,
        files=tuple(reversed(chain)),
        missing=tuple(reversed(missing)),
        lack=_lack(files, missing, version),
    )


def _by_version(
    files: Iterable[StateFile], version: int, ids: Mapping[int, str]
) -> dict[tuple[int, bool], StateFile]:
    """Return (version, whether it is a base) → the file that counts."""
    mine = [file for file in files if file.version <= version]
    provider = max(mine, key=lambda file: file.version).provider if mine else ""
    return {
        (file.version, file.kind in _BASES): file
        for file in mine
        if file.provider == provider and file.unique_id == ids.get(file.version)
    }


def _walk(
    there: Mapping[tuple[int, bool], StateFile], version: int, ids: Mapping[int, str], kind: str
) -> tuple[list[StateFile], list[str]]:
    """Go from a version down to its base: return the files, and the names of the missing ones."""
    versions = sorted({found for found, _ in there})
    chain: list[StateFile] = []
    missing: list[str] = []
    # The commits that name older files may be purged: only a lineage names the files below.
    least = max(min(ids, default=1), 1)
    at = version
    while at >= least or (at, True) in there:
        found = there.get((at, True)) or there.get((at, False))
        if found is not None:
            chain.append(found)
            if found.kind in _BASES:
                break
            at -= 1
            continue
        # Go down to the next existing file: a file with a wild name can make a very wide hole.
        below = bisect_left(versions, at) - 1
        lower = versions[below] if below >= 0 else max(at - 1, least - 1)
        missing += [f"{_stem(one, ids)}.{kind}" for one in range(at, max(lower, at - _LISTED), -1)]
        if below < 0:
            break  # nothing older is left: the rest of the chain is one hole
        at = lower
    return chain, missing


def _lack(files: Sequence[StateFile], missing: list[str], version: int) -> Lack | None:
    if not missing:
        return None
    if not files:
        return Lack.FOLDER
    oldest = int(missing[-1].split(".")[0].split("_")[0])
    # Retention removes the oldest files, and keeps all that the newest version needs.
    newest = max(file.version for file in files)
    began = any(file.version < oldest for file in files)
    return Lack.FILE if began or newest <= version else Lack.PURGED


def _stem(version: int, ids: Mapping[int, str]) -> str:
    return f"{version}_{ids[version]}" if version in ids else str(version)


def _kind_of_change(files: Sequence[StateFile]) -> str:
    """Return the kind of file that the provider would have written for a missing one."""
    kinds = {file.kind for file in files}
    return "changelog" if "changelog" in kinds else "zip" if "zip" in kinds else "delta"
