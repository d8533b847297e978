"""How many partitions an operator's state must have: one answer for every verb. Pure.

The offset entry of a batch pins spark.sql.shuffle.partitions. It is a stranger's text: a number
that no cluster has must not become as many tasks, names or rows here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from floodmark.checkpoint.model import SHUFFLE_PARTITIONS, Checkpoint
from floodmark.errors import FileGone

_TOLD = 100
_DIGITS = 18


class PartitionsMissing(FileGone):
    """The checkpoint pins far more partitions than its state has."""


@dataclass(frozen=True)
class PartitionCount:
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
                "Restore what is wrong from a backup, or go on without any state: `floodmark "
                "upgrade CP NEW --without-state`.",
            )


def partition_count(
    checkpoint: Checkpoint,
    operator: int,
    batch: int | None,
    found: Collection[int],
    keyed: bool,
) -> PartitionCount:
    """After a batch. `found`: the partitions that have files; `keyed`: its state has keys."""
    there = max(found, default=-1) + 1
    # A limit, or an aggregation without keys, has one partition whatever is written down.
    if set(found) == {0} and not keyed:
        return PartitionCount(operator, batch, 1, 1)
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
