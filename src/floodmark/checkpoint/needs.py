"""What the next start needs of the state: for every store, the files that rebuild a version.

Nothing is read: with unique ids, the commits tell which files count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from floodmark.checkpoint.layout import StateFile, store_folder
from floodmark.checkpoint.model import SHUFFLE_PARTITIONS, Checkpoint

_BASES = ("snapshot", "zip")
_Store = tuple[int, int, str]
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
    begun: bool
    """Some file of this store is there, of whatever version."""

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


def partitions_of(checkpoint: Checkpoint, operator: int, version: int) -> int:
    """How many partitions an operator's state has to have at a version."""
    found = {file.partition for file in checkpoint.state_files if file.operator == operator}
    metadata = checkpoint.operators.get(operator)
    described = metadata.stores[0].num_partitions if metadata and metadata.stores else None
    # A limit, or an aggregation without keys, has one partition whatever is written down.
    if found == {0}:
        return 1
    # Batch N leaves version N + 1; the entry after it may be of a repartition.
    entry = checkpoint.offsets.get(version - 1) or checkpoint.latest_entry
    pinned = entry.metadata.conf.get(SHUFFLE_PARTITIONS, "") if entry and entry.metadata else ""
    if pinned.isascii() and pinned.isdecimal() and len(pinned) < 7:
        return int(pinned)
    if described is not None:
        return described
    return max(found, default=-1) + 1


def state_needs(checkpoint: Checkpoint, version: int | None = None) -> tuple[StoreNeed, ...]:
    """Every store of every partition at a version: by default what the next batch loads."""
    if version is None:
        version = next_batch(checkpoint)
    if not version:
        return ()  # version 0 is the empty store, and has no file
    by_store: dict[_Store, list[StateFile]] = defaultdict(list)
    stores: dict[int, set[str]] = defaultdict(set)
    for file in checkpoint.state_files:
        by_store[file.operator, file.partition, file.store].append(file)
        stores[file.operator].add(file.store)
    needs = []
    for operator in (described.operator for described in checkpoint.state_operators):
        names = sorted(stores.get(operator) or {"default"})
        for partition in range(partitions_of(checkpoint, operator, version)):
            for store in names:
                files = by_store.get((operator, partition, store), [])
                ids = _unique_ids(checkpoint, operator, partition, store, names)
                needs.append(_need(operator, partition, store, version, files, ids))
    return tuple(needs)


def _unique_ids(
    checkpoint: Checkpoint, operator: int, partition: int, store: str, stores: list[str]
) -> Mapping[int, str]:
    """version → the unique id that its commit names; empty for plain names."""
    order = JOIN_STORES if set(stores) & set(JOIN_STORES) else tuple(stores)
    if store not in order:
        return {}
    at = order.index(store)
    found = {}
    for batch, commit in checkpoint.commits.items():
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
    rocksdb = any(file.provider == "rocksdb" for file in files)
    chain: list[StateFile] = []
    missing: list[str] = []
    at = version
    known_to = min(ids, default=1) if ids else 1
    while at > 0:
        base = there.get((at, True))
        if base is not None:
            chain.append(base)
            break
        if at < known_to:
            break  # the commits that name older files are purged: only a lineage tells
        change = there.get((at, False))
        if change is not None:
            chain.append(change)
        else:
            missing.append(_name(at, ids.get(at), rocksdb, there))
        at -= 1
        if missing and not any(found <= at for found, _ in there):
            break  # nothing older is left: the rest of the chain is one hole
    return StoreNeed(
        operator,
        partition,
        store,
        version,
        tuple(reversed(chain)),
        tuple(reversed(missing)),
        bool(files),
    )


def _name(
    version: int, unique_id: str | None, rocksdb: bool, there: Mapping[tuple[int, bool], StateFile]
) -> str:
    kind = "delta"
    if rocksdb:
        changes = any(not is_base for _, is_base in there)
        kind = "changelog" if changes else "zip"
    return f"{version}_{unique_id}.{kind}" if unique_id else f"{version}.{kind}"
