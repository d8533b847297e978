"""State reshaped by the executors: the same codec, a task a partition.

Where keys stay as they are every partition is its own work, and nothing but the plan and the
checksums passes through the driver. Where keys change, rows change partitions as well: that is
done by this process, which holds one partition at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.changes.apply import Places
from floodmark.changes.reshape_rewriter import ReshapeRewriter, views_of
from floodmark.checkpoint.layout import FileInfo
from floodmark.state.tally import Tally
from floodmark.storage.files import open_files
from floodmark.storage.load import Entries, load
from floodmark.storage.state_reshape import Goal, Written, goes_straight, write_state
from floodmark.storage.state_write import WrittenStore

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = "again boolean, partition int, store string, paths array<string>, sizes array<bigint>, \
rows bigint, first string, second string"


@dataclass
class SparkReshaper(ReshapeRewriter):
    spark: Any = None
    storage: Mapping[str, Any] | None = None

    def write(self, goal: Goal, places: Places) -> Written:
        if not goes_straight(goal, self.views(goal, places.origin)):
            return super().write(goal, places)
        task = _Task(places.origin.root, places.target.root, dict(self.storage or {}), goal)
        numbers = self.spark.range(0, goal.partitions, 1, goal.partitions)
        found = numbers.mapInArrow(task, _COLUMNS).collect()
        stores: dict[bool, dict[tuple[int, str], WrittenStore]] = {False: {}, True: {}}
        for row in found:
            files = tuple(FileInfo(*pair) for pair in zip(row["paths"], row["sizes"], strict=True))
            tally = Tally(row["rows"], (int(row["first"]), int(row["second"])))
            stores[row["again"]][row["partition"], row["store"]] = WrittenStore(files, tally)
        return Written(goal, stores[False], stores[True])


@dataclass(frozen=True)
class _Task:
    """What an executor does; it opens the places itself."""

    origin: str
    target: str
    storage: Mapping[str, Any]
    goal: Goal

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        origin = open_files(self.origin, self.storage)
        target = open_files(self.target, self.storage)
        views = views_of(self.goal, origin, load(origin, Entries.ALL))
        for piece in numbers:
            written = write_state(self.goal, target, views, None, piece.column(0).to_pylist())
            yield _rows(written)


def _rows(written: Written) -> pa.RecordBatch:
    import pyarrow as pa

    rows = [
        {
            "again": again,
            "partition": partition,
            "store": store,
            "paths": [file.path for file in one.files],
            "sizes": [file.size for file in one.files],
            "rows": one.tally.rows,
            # 64 bits without a sign, which Spark has no type for.
            "first": str(one.tally.sums[0]),
            "second": str(one.tally.sums[1]),
        }
        for again, stores in ((False, written.stores), (True, written.again))
        for (partition, store), one in stores.items()
    ]
    schema = pa.schema(
        [
            ("again", pa.bool_()),
            ("partition", pa.int32()),
            ("store", pa.string()),
            ("paths", pa.list_(pa.string())),
            ("sizes", pa.list_(pa.int64())),
            ("rows", pa.int64()),
            ("first", pa.string()),
            ("second", pa.string()),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema)
