"""Checks whether keys are in the partition that Spark's hash gives them (`doctor --read-data`).

A state file in another partition's place decodes well, and Spark loads it: its keys are never found
again, and the keys of the replaced file are gone. Such a file is wrong from its first key on, so a
few keys of each file are enough. They are hashed together, for many files at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.conf_keys import STRICT_DISTRIBUTION
from floodmark.checkpoint.layout import StateFile
from floodmark.checkpoint.state_chain import StoreChain
from floodmark.errors import FloodmarkError
from floodmark.state.files.rocksdb import NOTHING, RocksSnapshot
from floodmark.state.files.soundness import first_keys
from floodmark.state.keys.grouping import Grouping, grouping_of
from floodmark.state.rows.rowbytes import gather, row_bytes
from floodmark.statestore.open import open_state
from floodmark.statestore.store import OpenedPartition
from floodmark.statestore.view import StateView

if TYPE_CHECKING:
    from floodmark.diagnosis.facts import Gathering
    from floodmark.state.files.records import Records

# By chance, all sampled keys of a foreign file belong here once in 2 ** 20 times.
_BITS = 20
_Sample = tuple[StateFile, list[bytes]]
_Store = tuple[StateView, Grouping]


class Homes:
    """Knows where the keys of every store belong, if its schema shows it."""

    def __init__(self, found: Gathering, row_checksums: bool) -> None:
        self._found = found
        self._row_checksums = row_checksums
        self._views = lru_cache(maxsize=None)(self._open)
        self._needed = {file.path for need in found.needs for file in need.files}
        self._waiting: dict[tuple[int, str], list[_Sample]] = defaultdict(list)
        self._changes: dict[str, _Sample] = {}

    def _open(self, operator: int) -> tuple[_Store, ...]:
        """Return the readings of an operator whose keys are spread over partitions."""
        files, checkpoint = self._found.files, self._found.checkpoint
        # Before 3.3 a query could spread its keys by only some of their columns.
        if checkpoint.conf.get(STRICT_DISTRIBUTION) != "true":
            return ()
        try:
            first = open_state(files, checkpoint, operator)
            views = [open_state(files, checkpoint, operator, store) for store in first.stores]
            known = [(view, grouping_of(view.reading)) for view in views if view.reading.schema]
        except (FloodmarkError, AssertionError):
            return ()  # without a schema nothing can be checked; other rules report that
        return tuple(
            (view, grouping)
            for view, grouping in known
            if len(view.partitions) > 1 and not grouping.is_keyless and grouping.is_settled
        )

    def knows(self, operator: int) -> bool:
        return bool(self._views(operator))

    def sample(self, file: StateFile, head: bytes) -> None:
        """Note some keys of a delta, a snapshot or a changelog."""
        views = self._views(file.operator)
        if not views:
            return
        most = -(-_BITS // (len(views[0][0].partitions).bit_length() - 1))
        keys = first_keys(head, file.kind, most, self._row_checksums)
        if keys and file.kind != "changelog":
            self._waiting[file.operator, file.store].append((file, keys))
        elif keys and file.path in self._needed:
            self._changes[file.path] = (file, keys)

    def compare(self) -> None:
        """Judge the deltas and snapshots noted so far."""
        for (operator, store), samples in self._waiting.items():
            for view, grouping in self._views(operator):
                if view.at.store == store and view.at.provider == "hdfs":
                    self._judge((view, grouping), samples, None)
        self._waiting.clear()

    def compare_store(
        self, need: StoreChain, snapshot: RocksSnapshot | None, first: Records | None
    ) -> None:
        """Judge the first pairs of a RocksDB snapshot, and the changelogs after it."""
        samples = [self._changes[f.path] for f in need.files if f.path in self._changes]
        if first is not None and len(first):
            samples.append((need.files[0], first.keys.to_list()))
        for view, grouping in self._views(need.operator):
            if samples and view.at.store == need.store and view.at.provider == "rocksdb":
                self._judge((view, grouping), samples, snapshot)

    def _judge(
        self, store: _Store, samples: Sequence[_Sample], snapshot: RocksSnapshot | None
    ) -> None:
        """Judge all samples at once; if a key cannot be decoded, each file separately."""
        try:
            self._judge_together(store, samples, snapshot)
        except (FloodmarkError, ValueError, IndexError):
            for sample in samples if len(samples) > 1 else ():
                self._judge(store, [sample], snapshot)

    def _judge_together(
        self, store: _Store, samples: Sequence[_Sample], snapshot: RocksSnapshot | None
    ) -> None:
        import numpy as np

        view, grouping = store
        nothing = StoreChain(view.at.operator, 0, view.at.store, 0)
        layout = view.layout(OpenedPartition(view.at, nothing, NOTHING, (), snapshot))
        rows = row_bytes([key for _, keys in samples for key in keys])
        owners = np.repeat(np.arange(len(samples)), [len(keys) for _, keys in samples])
        if layout.family is not None:
            mine = gather(rows.skip(2).data, rows.starts, "<i2") == layout.family
            rows, owners = rows.take(mine).skip(2), owners[mine]
        if not len(rows):
            return
        count = len(view.partitions)
        homes = grouping.hashes(layout.decode_keys(rows)).view("i4").astype(np.int64) % count
        here = np.array([file.partition for file, _ in samples])[owners]
        self._tell(samples, owners, homes, homes != here)

    def _tell(self, samples: Sequence[_Sample], owners: Any, homes: Any, astray: Any) -> None:
        for at in sorted(set(owners[astray].tolist())):
            mine = owners == at
            wrong = homes[mine & astray]
            self._found.strays[samples[at][0].path] = (
                f"{len(wrong):,} of the {int(mine.sum()):,} checked keys belong to other "
                f"partitions, the first to partition {int(wrong[0])}"
            )
