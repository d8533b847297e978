"""How many keys a state has and how large they are, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from floodmark.statestore.view import StateView


@dataclass(frozen=True)
class PartitionStats:
    partition: int
    """The partition's number."""
    keys: int
    """The number of its keys."""
    bytes: int
    """The size of its rows; for DStreams the size of its file."""


@dataclass(frozen=True)
class StateStats:
    keys: int
    """The number of keys in the store."""
    bytes: int
    """The size of their rows; for DStreams the size of the files."""
    partitions: tuple[PartitionStats, ...]
    """The same for each partition."""
    skew: float | None
    """The keys of the fullest partition, divided by the mean; None if there are no keys."""

    @classmethod
    def over(cls, found: Iterable[PartitionStats]) -> StateStats:
        parts = tuple(found)
        keys = sum(part.keys for part in parts)
        most = max((part.keys for part in parts), default=0)
        skew = round(most * len(parts) / keys, 3) if keys else None
        return cls(keys, sum(part.bytes for part in parts), parts, skew)

    def __repr__(self) -> str:
        from floodmark.screen import fields_text

        return fields_text(self)

    def _repr_html_(self) -> str:
        from floodmark.screen import fields_html

        return fields_html(self)


def partition_stats(view: StateView, partition: int) -> PartitionStats:
    with view.at.open(partition) as opened:
        layout = view.layout(opened)
        keys = size = 0
        for records in opened.records():
            mine = layout.mine(records)
            keys += len(mine)
            size += mine.keys.size + mine.values.size
    return PartitionStats(partition, keys, size)
