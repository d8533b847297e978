"""What the next start needs of the state: for every store, the files that rebuild a version.

Nothing is read: with unique ids, the commits tell which files count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from floodmark.checkpoint.layout import DEFAULT_STORE, StateFile, store_folder
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.partitions import PartitionCount, partition_count

_BASES = ("snapshot", "zip")
_Store = tuple[int, int, str]
_MISSING_TOLD = 100
# The order in which a join's ids stand in a commit.
JOIN_STORES = (
    "left-keyToNumValues",
    "left-keyWithIndexToValue",
    "right-keyToNumValues",
    "right-keyWithIndexToValue",
)


@dataclass(frozen=True)
class StoreNeed:
    """One store of one partition, and what there is of the version it has to be rebuilt to."""

    operator: int
    partition: int
    store: str
    version: int
    files: tuple[StateFile, ...]
    """The base, if there is one, and the changes after it, oldest first."""
    missing: tuple[str, ...]
    """Names of the files that should stand among them and do not, oldest first."""

    @property
    def folder(self) -> str:
        return store_folder(self.operator, self.partition, self.store)

    @property
    def lacks_version(self) -> bool:
        """The version itself is not there, not just one that it builds on."""
        return any(name.split(".")[0].split("_")[0] == str(self.version) for name in self.missing)


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
    lacking = sorted(
        {
            (need.operator, need.partition)
            for need in index.needs(version)
            if need.lacks_version and need.operator not in named
        }
    )
    if lacking:
        operator, partition = lacking[0]
        others = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        found.append(f"state/{operator}/{partition}{others}.")
    return tuple(found)


class StateIndex:
    """The state files by store, to be asked for the needs of one version after another."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        without: Collection[str] = (),
        keyed: Collection[int] = (),
    ) -> None:
        """`without`: files that are taken as not being there; `keyed`: operators with keys."""
        self.checkpoint = checkpoint
        self.keyed = {*keyed, *checkpoint.keyed}
        self.files: dict[_Store, list[StateFile]] = defaultdict(list)
        self.stores: dict[int, set[str]] = defaultdict(set)
        self.partitions: dict[int, set[int]] = defaultdict(set)
        for file in checkpoint.state_files:
            if file.path not in without:
                self.files[file.operator, file.partition, file.store].append(file)
            self.stores[file.operator].add(file.store)
            self.partitions[file.operator].add(file.partition)

    def needs(self, version: int) -> tuple[StoreNeed, ...]:
        """Every store of every partition, at a version."""
        if version < 1:
            return ()  # version 0 is the empty store, and has no file
        needs = []
        for operator in (described.operator for described in self.checkpoint.state_operators):
            names = sorted(self.stores.get(operator) or {DEFAULT_STORE})
            for partition in range(self.partition_count(operator, version).told):
                for store in names:
                    files = self.files.get((operator, partition, store), [])
                    ids = self._unique_ids(operator, partition, store, names)
                    needs.append(_need(operator, partition, store, version, files, ids))
        return tuple(needs)

    def partition_count(self, operator: int, version: int) -> PartitionCount:
        """How many partitions an operator's state has to have at a version."""
        # Batch N leaves version N + 1; the entry after it may be of a repartition.
        return partition_count(
            self.checkpoint,
            operator,
            version - 1,
            self.partitions.get(operator, set()),
            operator in self.keyed,
        )

    def far_off(self, version: int) -> tuple[PartitionCount, ...]:
        """Operators that lack so many partitions that `needs` names only the first of them."""
        if version < 1:
            return ()
        counts = (
            self.partition_count(described.operator, version)
            for described in self.checkpoint.state_operators
        )
        return tuple(count for count in counts if count.is_far_off)

    def _unique_ids(
        self, operator: int, partition: int, store: str, stores: list[str]
    ) -> Mapping[int, str]:
        """version → the unique id that its commit names; empty for plain names."""
        order = JOIN_STORES if set(stores) & set(JOIN_STORES) else tuple(stores)
        if store not in order:
            return {}
        at = order.index(store)
        found = {}
        for batch, commit in self.checkpoint.commits.items():
            partitions = commit.state_unique_ids.get(operator, ())
            if partition < len(partitions) and at < len(partitions[partition]):
                found[batch + 1] = partitions[partition][at]
        return found


def _need(
    operator: int,
    partition: int,
    store: str,
    version: int,
    files: list[StateFile],
    ids: Mapping[int, str],
) -> StoreNeed:
    there = {
        (file.version, file.kind in _BASES): file
        for file in files
        if file.version <= version and file.unique_id == ids.get(file.version)
    }
    versions = sorted({found for found, _ in there})
    kind = _kind_of_change(files, there)
    chain: list[StateFile] = []
    missing: list[str] = []
    # The commits that name older files may be purged: below, only a lineage tells.
    least = max(min(ids, default=1), 1)
    at = version
    while at >= least or (at, True) in there:
        base = there.get((at, True))
        change = there.get((at, False))
        if base is not None:
            chain.append(base)
            break
        if change is not None:
            chain.append(change)
            at -= 1
            continue
        # Down to the next file that is there: a hole may be as wide as a wild name makes it.
        below = bisect_left(versions, at) - 1
        lower = versions[below] if below >= 0 else max(at - 1, least - 1)
        gap = range(at, max(lower, at - _MISSING_TOLD), -1)
        missing += [f"{_stem(number, ids)}.{kind}" for number in gap]
        if below < 0:
            break  # nothing older is left: the rest of the chain is one hole
        at = lower
    return StoreNeed(
        operator,
        partition,
        store,
        version,
        tuple(reversed(chain)),
        tuple(reversed(missing)),
    )


def _stem(version: int, ids: Mapping[int, str]) -> str:
    return f"{version}_{ids[version]}" if version in ids else str(version)


def _kind_of_change(files: list[StateFile], there: Mapping[tuple[int, bool], StateFile]) -> str:
    """What the provider would have written where a file is missing."""
    if not any(file.provider == "rocksdb" for file in files):
        return "delta"
    return "changelog" if any(not is_base for _, is_base in there) else "zip"
