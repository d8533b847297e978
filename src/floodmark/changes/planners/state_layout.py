"""Describes how a new checkpoint stores its state: partitions, provider, names of files.

`migrate` changes it together with the code, with the rules of `repartition` and `convert`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from floodmark.changes.planners.convert import (
    CLASSES,
    WORDS,
    has_unique_ids,
    provider_notes,
    require_provider,
)
from floodmark.changes.planners.repartition import pinned_note, require_number
from floodmark.checkpoint.conf_keys import PROVIDER_CLASS, SHUFFLE_PARTITIONS
from floodmark.checkpoint.model import Checkpoint
from floodmark.statestore.rewrite.operator_stores import StoreToRewrite, require_rewritable
from floodmark.statestore.rewrite.spread import BY_ALL_KEYS, require_hashed_by_all_keys
from floodmark.statestore.write import HDFS, ROCKSDB


@dataclass(frozen=True)
class StateLayout:
    """The requested layout; None values stay as in the old checkpoint."""

    partitions: int | None = None
    provider: str | None = None
    state_format: int | None = None

    def __post_init__(self) -> None:
        if self.partitions is not None:
            require_number(self.partitions)
        if self.provider is not None:
            require_provider(self.provider)

    @property
    def conf(self) -> dict[str, str]:
        """Return the settings that the new checkpoint pins for this layout."""
        pins: dict[str, str] = {}
        if self.partitions is not None:
            pins[SHUFFLE_PARTITIONS] = str(self.partitions)
        if self.provider is not None:
            pins[PROVIDER_CLASS] = CLASSES[self.provider]
        return pins

    @property
    def options(self) -> dict[str, object]:
        given = {
            "partitions": self.partitions,
            "provider": self.provider,
            "state_format": self.state_format,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def words(self) -> str:
        """Return the layout's words for a title."""
        found = [f"over {self.partitions} partitions"] if self.partitions is not None else []
        found += [f"in {WORDS[self.provider]}"] if self.provider is not None else []
        return ", ".join(["", *found])

    def unique_ids(self, conf: Mapping[str, str], had: bool) -> bool:
        return has_unique_ids(provider_of(conf), self.state_format, had)

    def notes(self, conf: Mapping[str, str], ids: bool, had: bool) -> tuple[str, ...]:
        found = () if self.partitions is None else (pinned_note(self.partitions),)
        if self.provider is None and self.state_format is None:
            return found
        return (*found, *provider_notes(provider_of(conf), ids, had))

    def require_possible(
        self,
        checkpoint: Checkpoint,
        stores: Sequence[tuple[StoreToRewrite, ...]],
        provider: str,
        accept: Collection[str],
    ) -> None:
        """Check the old stores; refuse what is impossible before anything begins."""
        for mine in stores:
            moves = self.partitions is not None and any(
                not one.is_keyless and len(one.partitions) != self.partitions for one in mine
            )
            if moves or self.provider is not None:
                require_rewritable(mine, provider, moves=moves)
            if moves and BY_ALL_KEYS not in accept:
                require_hashed_by_all_keys(mine, checkpoint.conf)


def provider_of(conf: Mapping[str, str]) -> str:
    return ROCKSDB if conf.get(PROVIDER_CLASS, "").endswith("RocksDBStateStoreProvider") else HDFS
