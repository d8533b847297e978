"""Which state must exist, and of how many partitions: the one answer for every verb. Pure.

Batch N leaves state version N + 1 in every partition of every store of every operator. A version
is the last snapshot, if there is one, and every change after it. Names tell which files these
are. With unique ids (checkpoint format 2) the commits tell which files count, or the lineage in
a changelog, which a caller gives who can read it.
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
from floodmark.errors import MalformedFile, PartitionsMissing, StateFileMissing, StatePurged

if TYPE_CHECKING:
    from floodmark.checkpoint.model import Checkpoint

# An offset entry is a stranger's text: the number that it pins must not become as many names.
_TOLD = 100
_DIGITS = 18
_BASES = ("snapshot", "zip")
_WITHOUT_STATE = (
    "Restore what is wrong from a backup, or go on without any state: `floodmark upgrade CP NEW "
    "--without-state`."
)
Steps = Sequence[tuple[int, str]]
"""A lineage: versions and the unique ids of their files, the last snapshot's first."""
Lineage = Callable[[StateFile], Steps | None]
"""Gives the versions that a changelog continues; None where that is not known."""
Tables = Callable[[StateFile], tuple[FileInfo, ...]]
"""Gives the SSTs and logs that a RocksDB snapshot names, with their sizes."""


class Lack(Enum):
    """Why a version cannot be rebuilt."""

    FOLDER = "the folder holds no state file"
    FILE = "a file is missing"
    PURGED = "retention has removed the oldest files"


@dataclass(frozen=True)
class StoreChain:
    """One store of one partition, and the files that rebuild a version of it."""

    operator: int
    partition: int
    store: str
    version: int
    files: tuple[StateFile, ...] = ()
    """The base, if there is one, and the changes after it, oldest first."""
    missing: tuple[str, ...] = ()
    """Names of the files that should stand among them and do not, oldest first."""
    lack: Lack | None = None
    tables: tuple[FileInfo, ...] = ()
    """RocksDB: the SSTs and archived logs that the snapshot names, where that was asked."""

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
        """The version itself is not there, not just one that it builds on."""
        return any(name.split(".")[0].split("_")[0] == str(self.version) for name in self.missing)

    @property
    def begins_before_the_commits(self) -> bool:
        """Only a lineage tells what comes before the files that were found."""
        return bool(self.files) and not self.snapshot and self.files[0].version > 1

    @property
    def absent(self) -> str:
        """What is not there: the folder, a file, or the first and the last of several files."""
        if self.lack is Lack.FOLDER:
            return self.folder
        first, last = self.missing[0], self.missing[-1]
        return f"{self.folder}/{first}" if first == last else f"{self.folder}/{first} to {last}"

    def require(self) -> None:
        """Raises where the version cannot be rebuilt."""
        batch = self.version - 1
        if self.lack is Lack.FOLDER:
            # Spark removes versions, and never the newest one: this it has not done.
            raise StateFileMissing(
                f"{self.folder} holds no state file at all",
                f"Batch {batch} left one in every partition, so the folder was lost or emptied.",
                _WITHOUT_STATE,
            )
        if self.lack is Lack.PURGED:
            raise StatePurged(
                f"{self.folder}: the state of batch {batch} cannot be put together any more",
                f"It needs {self.missing[0]} and what follows; Spark has removed the oldest files"
                " (spark.sql.streaming.minBatchesToRetain).",
                "Choose a later batch.",
            )
        if self.lack is Lack.FILE:
            one = len(self.missing) == 1
            raise StateFileMissing(
                f"{self.absent} {'is' if one else 'are'} missing",
                f"Batch {batch} left version {self.version}, which needs {'it' if one else 'them'}:"
                " a version is the last snapshot and every change since.",
                "Restore what is missing from a backup. `floodmark repair CP` goes back to a batch "
                "whose state does not need it, where there is one.",
            )


@dataclass(frozen=True)
class PartitionCount:
    """How many partitions an operator's state must have after a batch."""

    operator: int
    batch: int | None
    """The batch whose entry was asked."""
    needed: int
    """As the entry pins it; where it says nothing, as the operator's metadata does."""
    there: int
    """One more than the highest partition that has a file."""

    @property
    def is_far_off(self) -> bool:
        """The partitions that are missing are too many to name each."""
        return self.needed > self.there + _TOLD

    @property
    def is_wild(self) -> bool:
        """Not to be believed: there is state of far fewer, or Spark's Int does not hold it."""
        return self.is_far_off and (self.there > 0 or self.needed >= 1 << 31)

    @property
    def told(self) -> int:
        """How many to look at one by one: all of them, unless they are far too many."""
        return min(self.needed, self.there + _TOLD)

    @property
    def words(self) -> str:
        pinned = f"offsets/{self.batch} pins" if self.batch is not None else "The checkpoint pins"
        has = "1 partition" if self.there == 1 else f"{self.there:,} partitions"
        return (
            f"{pinned} {SHUFFLE_PARTITIONS} to {self.needed:,}, and state/{self.operator} has {has}"
        )

    def require(self) -> None:
        if self.is_far_off:
            raise PartitionsMissing(
                self.words,
                "A batch starts from the state of every partition, so no batch can start from "
                "this one. Folders of the state are lost, or the entry was changed.",
                _WITHOUT_STATE,
            )


def partition_count(
    checkpoint: Checkpoint,
    operator: int,
    version: int,
    oldest: Mapping[int, int],
    keyed: bool,
) -> PartitionCount:
    """At a version. `oldest`: partition → its oldest version; `keyed`: the state has keys."""
    batch = version - 1 if version > 0 else None
    # A limit, or an aggregation without keys, has one partition whatever is written down.
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
    """Partition → the oldest version that it has a file of."""
    found: dict[int, int] = {}
    for file in files:
        found[file.partition] = min(file.version, found.get(file.partition, file.version))
    return found


def store_names(found: Collection[str], declared: Collection[str] = ()) -> tuple[str, ...]:
    """The stores that an operator must have, in the order in which a commit names their ids.

    `found`: those that have a file; `declared`: those that the operator's metadata names.
    """
    names = {*found, *declared}
    if names & set(JOIN_STORES):
        names |= set(JOIN_STORES)
    return tuple(sorted(names)) or (DEFAULT_STORE,)


def unique_id(ids: Sequence[Sequence[str]], partition: int, store: str) -> str | None:
    """The id of a store's file, from a commit's ids of the operator; None for plain names."""
    mine = ids[partition] if partition < len(ids) else ()
    at = JOIN_STORES.index(store) if len(mine) > 1 and store in JOIN_STORES else 0
    return mine[at] if at < len(mine) else None


def next_batch(checkpoint: Checkpoint) -> int | None:
    """The batch that Spark runs at the next start, where the logs tell."""
    latest = checkpoint.latest_batch
    if latest is None:
        return None
    return latest + 1 if checkpoint.committed_batch == latest else latest


def missing_state(checkpoint: Checkpoint) -> tuple[str, ...]:
    """What the next start needs of the state and names alone show to be missing, in sentences."""
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
    """The state files by store, to be asked for the chains of one version after another."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        without: Collection[str] = (),
        keyed: Collection[int] = (),
        lineage: Lineage | None = None,
    ) -> None:
        """`without`: files that are taken as not being there; `keyed`: operators with keys."""
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
        """Every store of every partition, at a version."""
        if version < 1:
            return ()  # version 0 is the empty store, and has no file
        return tuple(
            self._chain(operator.operator, partition, store, version)
            for operator in self.checkpoint.state_operators
            for partition in range(self.partition_count(operator.operator, version).told)
            for store in operator.stores
        )

    def required(self, version: int, tables: Tables) -> tuple[StoreChain, ...]:
        """Every store with all that it is rebuilt from; raises where something is missing."""
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
        """How many partitions an operator's state has to have at a version."""
        oldest = self.oldest.get(operator, {})
        return partition_count(self.checkpoint, operator, version, oldest, operator in self.keyed)

    def far_off(self, version: int) -> tuple[PartitionCount, ...]:
        """Operators that lack so many partitions that `chains` names only the first of them."""
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
    for table in named:
        if table.path not in sizes:
            raise table_missing(table.path)
        if sizes[table.path] != table.size:
            raise table_cut(table.path, sizes[table.path], table.size)
    return replace(chain, tables=named)


def table_missing(path: str) -> StateFileMissing:
    return StateFileMissing(
        f"{path} is missing",
        "A RocksDB snapshot names it: the rows are in it.",
        "Restore the file from a backup, or choose a batch whose state does not need it.",
    )


def table_cut(path: str, found: int, size: int) -> MalformedFile:
    return MalformedFile(
        f"{path} has {found:,} bytes; the snapshot says {size:,}",
        "The file is cut short, or belongs to another snapshot.",
        "Restore the file from a backup, or choose a batch whose state does not need it.",
    )


def chain_of(
    bare: StoreChain,
    files: Sequence[StateFile],
    ids: Mapping[int, str],
    lineage: Lineage | None = None,
) -> StoreChain:
    """`bare` with its files and what is missing of them.

    `files`: all that the store's folder holds; `ids`: version → the unique id of its files.
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
    """(version, is it a base) → the file that counts."""
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
    """From a version down to its base: the files, and the names of the missing ones."""
    versions = sorted({found for found, _ in there})
    chain: list[StateFile] = []
    missing: list[str] = []
    # The commits that name older files may be purged: below, only a lineage tells.
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
        # Down to the next file that is there: a hole may be as wide as a wild name makes it.
        below = bisect_left(versions, at) - 1
        lower = versions[below] if below >= 0 else max(at - 1, least - 1)
        missing += [f"{_stem(one, ids)}.{kind}" for one in range(at, max(lower, at - _TOLD), -1)]
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
    # Retention takes the beginning, and leaves all that the newest version needs.
    newest = max(file.version for file in files)
    began = any(file.version < oldest for file in files)
    return Lack.FILE if began or newest <= version else Lack.PURGED


def _stem(version: int, ids: Mapping[int, str]) -> str:
    return f"{version}_{ids[version]}" if version in ids else str(version)


def _kind_of_change(files: Sequence[StateFile]) -> str:
    """What the provider would have written where a file is missing."""
    kinds = {file.kind for file in files}
    return "changelog" if "changelog" in kinds else "zip" if "zip" in kinds else "delta"
