"""State reshaped by the executors: the same codec, a task a partition.

Where keys stay as they are every partition is its own work. Where keys change, rows change
partitions as well: then Spark's shuffle brings together what belongs together. Nothing but the
plan and the checksums passes through the driver.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.changes.apply import PlanPlaces
from floodmark.changes.reshape_rewriter import ReshapeRewriter, views_of
from floodmark.checkpoint.layout import FileInfo
from floodmark.engine.state.shuffled_rows import ROWS, by_goal, row_batch, slices
from floodmark.state.files.records import Records
from floodmark.state.rows.rowbytes import row_bytes
from floodmark.state.shapes.tally import Tally
from floodmark.statestore.rewrite.goal import Part, ReshapeTarget
from floodmark.statestore.rewrite.moving import moves, moving_rows
from floodmark.statestore.rewrite.reshape import Given, Views, Written, write_state
from floodmark.statestore.view import StateView
from floodmark.statestore.write import WrittenStore
from floodmark.storage.files import open_files
from floodmark.storage.load import Entries, load

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = "again boolean, partition int, store string, paths array<string>, sizes array<bigint>, \
rows bigint, first string, second string"
_NOTHING = -1
"""The kind of a row that only says that there is such a partition."""


@dataclass
class SparkReshaper(ReshapeRewriter):
    spark: Any = None
    storage: Mapping[str, Any] | None = None

    def write(self, goal: ReshapeTarget, places: PlanPlaces) -> Written:
        given = self.given(goal.operator) if self.given is not None else None
        task = _Task(places.origin.root, places.target.root, dict(self.storage or {}), goal, given)
        moving = list(_moving(goal, self.views(goal, places.origin)))
        if moving:
            readers = self._numbers(max(len(view.partitions) for _, _, view in moving))
            frame = by_goal(readers.mapInArrow(task.read, ROWS), goal.partitions)
            found = frame.mapInArrow(task.write_moved, _COLUMNS).collect()
        else:
            found = self._numbers(goal.partitions).mapInArrow(task.write, _COLUMNS).collect()
        stores: dict[bool, dict[tuple[int, str], WrittenStore]] = {False: {}, True: {}}
        for row in found:
            files = tuple(FileInfo(*pair) for pair in zip(row["paths"], row["sizes"], strict=True))
            tally = Tally(row["rows"], (int(row["first"]), int(row["second"])))
            stores[row["again"]][row["partition"], row["store"]] = WrittenStore(files, tally)
        return Written(goal, stores[False], stores[True])

    def _numbers(self, count: int) -> Any:
        return self.spark.range(0, count, 1, count)


def _moving(goal: ReshapeTarget, views: Views) -> Iterator[tuple[int, Part, StateView]]:
    """(kind, part, old rows) of all that changes partitions, after each batch that is carried."""
    batches = [goal.batch] if goal.in_flight is None else [goal.batch, goal.in_flight]
    for part, batch in itertools.product(goal.parts, batches):
        view = views(part, batch)
        if view is not None and moves(goal, part, view):
            yield _kind(goal, part, batch), part, view


def _kind(goal: ReshapeTarget, part: Part, batch: int) -> int:
    return 2 * goal.parts.index(part) + (batch == goal.in_flight)


@dataclass(frozen=True)
class _Task:
    """What an executor does; it opens the places itself."""

    origin: str
    target: str
    storage: Mapping[str, Any]
    goal: ReshapeTarget
    given: Given | None

    def write(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        views = self._views()
        for piece in numbers:
            for partition in piece.column(0).to_pylist():
                yield self._written(partition, views, {})

    def read(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np

        moving = list(_moving(self.goal, self._views()))
        for piece in numbers:
            for number in piece.column(0).to_pylist():
                if number == 0:
                    goals = np.arange(self.goal.partitions)
                    empty = row_bytes([b""] * len(goals))
                    yield row_batch(Records(empty, empty, goals < 0), goals, _NOTHING)
                for kind, part, view in moving:
                    if number < len(view.partitions):
                        old = view.partitions[number]
                        for records, goals in moving_rows(self.goal, part, view, old):
                            yield row_batch(records, goals, kind)

    def write_moved(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        views = self._views()
        for partition, group in itertools.groupby(slices(batches), lambda item: item[0]):
            rows: dict[int, list[Records]] = defaultdict(list)
            for _, kind, records in group:
                rows[kind].append(records)
            yield self._written(partition, views, rows)

    def _written(
        self, partition: int, views: Views, rows: Mapping[int, list[Records]]
    ) -> pa.RecordBatch:
        goal = self.goal

        def moved(part: Part, batch: int) -> Callable[[int], Iterator[Records]]:
            return lambda _: iter(rows.get(_kind(goal, part, batch), ()))

        target = open_files(self.target, self.storage)
        return _rows(write_state(goal, target, views, self.given, [partition], moved))

    def _views(self) -> Views:
        origin = open_files(self.origin, self.storage)
        return views_of(self.goal, origin, load(origin, Entries.ALL))


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
