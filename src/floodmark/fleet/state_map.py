"""Maps the state by partition: what each batch wrote, how evenly, and a restart's load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from floodmark.checkpoint.layout import FileInfo, StateFile
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.state_chain import StateIndex, StoreChain, next_batch

_MOST_BATCHES = 100
_MOST_PARTITIONS = 512
Tables = Mapping[str, tuple[FileInfo, ...]]
"""The SSTs and logs that each of RocksDB's zips names."""


@dataclass(frozen=True)
class HeatMap:
    """The bytes that each batch wrote into each partition of one operator."""

    operator: int
    name: str | None
    provider: str
    partitions: tuple[int, ...]
    batches: tuple[int, ...]
    bytes: tuple[tuple[int | None, ...], ...]
    """One row for each partition, one column for each batch; None: no file of it is left."""
    sizes: tuple[int, ...]
    """The size of all files, by partition."""
    skew: float | None
    """The largest partition divided by the mean; 1.0 is even."""
    left_out: int = 0
    """The number of partitions that are not in the map."""


@dataclass(frozen=True)
class PartitionLoad:
    operator: int
    partition: int
    store: str
    snapshot: int | None
    """The version of the snapshot with which the load begins."""
    changes: int
    """The number of deltas or changelogs after it."""
    bytes: int
    missing: str | None


@dataclass(frozen=True)
class RestartLoad:
    """The state that a restart reads before it processes the first row."""

    version: int | None
    files: int
    bytes: int
    most_changes: int
    """The number of changes in the longest chain."""
    partitions: tuple[PartitionLoad, ...]
    left_out: int = 0
    exact: bool = True
    """False where a RocksDB snapshot was not opened: its tables are not counted."""


def heat_maps(checkpoint: Checkpoint) -> tuple[HeatMap, ...]:
    return tuple(
        _heat_map(
            described.operator,
            described.name,
            described.provider,
            [file for file in checkpoint.state_files if file.operator == described.operator],
            _partition_sizes(checkpoint.files, described.operator),
        )
        for described in checkpoint.state_operators
    )


def _heat_map(
    operator: int,
    name: str | None,
    provider: str,
    files: Sequence[StateFile],
    sizes: Mapping[int, int],
) -> HeatMap:
    written: dict[tuple[int, int], int] = defaultdict(int)
    kinds: dict[tuple[int, int], set[str]] = defaultdict(set)
    for file in files:
        # A snapshot holds the whole state: a batch's own write is its delta or changelog.
        at = (file.partition, file.version - 1)
        if file.kind != "snapshot":
            written[at] += max(file.size, 0)
            kinds[at].add(file.kind)
    changed = {at for at, found in kinds.items() if found & {"delta", "changelog"}}
    for file in files:
        at = (file.partition, file.version - 1)
        if file.kind == "zip" and at in changed:
            written[at] -= max(file.size, 0)
    partitions = sorted(sizes)
    batches = sorted({batch for _, batch in written})[-_MOST_BATCHES:]
    shown = partitions[:_MOST_PARTITIONS]
    rows = tuple(tuple(written.get((partition, batch)) for batch in batches) for partition in shown)
    totals = tuple(sizes[partition] for partition in shown)
    return HeatMap(
        operator,
        name,
        provider,
        tuple(shown),
        tuple(batches),
        rows,
        totals,
        skew_of(sizes.values()),
        len(partitions) - len(shown),
    )


def _partition_sizes(files: Iterable[FileInfo], operator: int) -> dict[int, int]:
    found: dict[int, int] = defaultdict(int)
    prefix = f"state/{operator}/"
    for file in files:
        if file.path.startswith(prefix):
            partition = file.path[len(prefix) :].split("/", 1)[0]
            if partition.isascii() and partition.isdecimal() and len(partition) < 10:
                found[int(partition)] += max(file.size, 0)
    return found


def skew_of(sizes: Iterable[int]) -> float | None:
    known = list(sizes)
    mean = sum(known) / len(known) if known else 0
    return round(max(known) / mean, 2) if mean else None


def restart_load(checkpoint: Checkpoint, tables: Tables) -> RestartLoad:
    version = next_batch(checkpoint)
    chains = StateIndex(checkpoint).chains(version or 0)
    loads = [_load(chain, tables) for chain in chains]
    loads.sort(key=lambda load: (-load.bytes, load.operator, load.partition, load.store))
    return RestartLoad(
        version,
        sum(_files(chain, tables) for chain in chains),
        sum(load.bytes for load in loads),
        max((load.changes for load in loads), default=0),
        tuple(loads[:_MOST_PARTITIONS]),
        max(len(loads) - _MOST_PARTITIONS, 0),
        all(
            chain.snapshot is None or chain.snapshot.kind != "zip" or chain.snapshot.path in tables
            for chain in chains
        ),
    )


def _load(chain: StoreChain, tables: Tables) -> PartitionLoad:
    base = chain.snapshot
    named = tables.get(base.path, ()) if base else ()
    return PartitionLoad(
        chain.operator,
        chain.partition,
        chain.store,
        base.version if base else None,
        len(chain.changes),
        sum(max(file.size, 0) for file in chain.files) + sum(file.size for file in named),
        chain.absent if chain.lack else None,
    )


def _files(chain: StoreChain, tables: Tables) -> int:
    base = chain.snapshot
    return len(chain.files) + (len(tables.get(base.path, ())) if base else 0)
