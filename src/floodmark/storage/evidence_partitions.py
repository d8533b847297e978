"""Do keys lie in the partition that Spark's hash gives them? For `doctor --read-data`.

A whole state file in another partition's place decodes well, and Spark loads it: its keys are
never found again, and those of the file it replaced are gone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import StateFile, store_folder
from floodmark.errors import FloodmarkError
from floodmark.state.grouping import Grouping, grouping_of
from floodmark.storage.state import open_state
from floodmark.storage.state_chain import Chain
from floodmark.storage.state_store import OpenedPartition
from floodmark.storage.state_view import StateView

if TYPE_CHECKING:
    from floodmark.state.records import Records
    from floodmark.storage.evidence import Gathering

_SAMPLED = 64
_STRICT = "spark.sql.streaming.statefulOperator.useStrictDistribution"
_NO_CHAIN = Chain(None, ())


class Homes:
    """Knows where the keys of every store belong, as far as its schema tells."""

    def __init__(self, found: Gathering) -> None:
        self._found = found
        self._views = lru_cache(maxsize=None)(self._open)

    def _open(self, operator: int) -> tuple[tuple[StateView, Grouping], ...]:
        """The readings of an operator whose keys are spread over partitions."""
        files, checkpoint = self._found.files, self._found.checkpoint
        # Before 3.3 a query could spread its keys by some of their columns only.
        if checkpoint.conf.get(_STRICT) != "true":
            return ()
        try:
            first = open_state(files, checkpoint, operator)
            views = [open_state(files, checkpoint, operator, store) for store in first.stores]
            known = [(view, grouping_of(view.reading)) for view in views if view.reading.schema]
        except (FloodmarkError, AssertionError):
            return ()  # without a schema nothing can be told; other rules say so
        return tuple(
            (view, grouping)
            for view, grouping in known
            if len(view.partitions) > 1 and not grouping.is_keyless
        )

    def check_file(self, file: StateFile, records: Records) -> None:
        """Some keys of a delta or a snapshot: a swapped file is wrong from its first key on."""
        for view, grouping in self._views(file.operator):
            if view.at.store != file.store or view.at.provider != "hdfs":
                continue
            try:
                layout = view.layout(OpenedPartition(view.at, _NO_CHAIN))
                keys = layout.decode_keys(records.keys.take(_sample(len(records))))
                self._compare(file.path, grouping, keys, file.partition, len(view.partitions))
            except (FloodmarkError, ValueError, IndexError):
                continue

    def check_stores(self) -> None:
        """RocksDB: every key of the committed state."""
        for operator in self._found.checkpoint.state_operators:
            for view, grouping in self._views(operator.operator):
                if view.at.provider == "rocksdb":
                    for partition in view.partitions:
                        self._check_store(view, grouping, partition)

    def _check_store(self, view: StateView, grouping: Grouping, partition: int) -> None:
        try:
            with view.at.open(partition) as opened:
                layout = view.layout(opened)
                for records in opened.records():
                    keys = layout.mine(records).keys
                    if layout.family is not None:
                        keys = keys.skip(2)
                    path = store_folder(view.operator, partition, view.at.store)
                    decoded = layout.decode_keys(keys)
                    self._compare(path, grouping, decoded, partition, len(view.partitions))
        except (FloodmarkError, ValueError, IndexError):
            return  # it cannot be loaded: rules of their own say so

    def _compare(
        self, path: str, grouping: Grouping, keys: Any, partition: int, count: int
    ) -> None:
        import numpy as np

        if not len(keys):
            return
        homes = grouping.hashes(keys).view("i4").astype(np.int64) % count
        astray = np.nonzero(homes != partition)[0]
        if len(astray):
            self._found.strays[path] = (
                f"{len(astray):,} of {len(keys):,} keys belong elsewhere, the first in partition "
                f"{int(homes[astray[0]])}"
            )


def _sample(count: int) -> Any:
    import numpy as np

    return np.arange(min(count, _SAMPLED))
