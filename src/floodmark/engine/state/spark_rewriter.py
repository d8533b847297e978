"""Rewrites state on the executors, with the same codec: one task for each partition.

Where keys keep their partitions, each partition is rewritten alone; otherwise Spark's shuffle
brings the rows of a partition together. Only the plan and the checksums pass through the driver.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floodmark.changes.execute import PlanPlaces
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.checkpoint.layout import FileInfo
from floodmark.engine.spark.cluster import by_executors
from floodmark.engine.state.shuffled_rows import ROWS, by_goal, row_batch, slices
from floodmark.state.files.records import Records
from floodmark.state.rows.rowbytes import row_bytes
from floodmark.state.shapes.tally import Tally, tally
from floodmark.statestore.rewrite.new_state import (
    Given,
    Written,
    check_state,
    require_same_rows,
    write_state,
)
from floodmark.statestore.rewrite.old_rows import OldRows, OldState, old_state
from floodmark.statestore.rewrite.target import Part, StateTarget
from floodmark.statestore.write import WrittenStore
from floodmark.storage.files import open_files
from floodmark.storage.load import Entries, load

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = "again boolean, partition int, store string, paths array<string>, sizes array<bigint>, \
rows bigint, first string, second string"
_NOTHING = -1
"""The kind of a row that only says that a partition exists."""


@dataclass
class SparkRewriter(StateRewriter):
    spark: Any = None
    storage: Mapping[str, Any] | None = None

    def write(self, goal: StateTarget, places: PlanPlaces) -> Written:
        task = self._task(goal, places)
        moving = list(_moving(goal, self.old_state(goal, places.origin)))
        if moving:
            readers = self._numbers(max(len(old.partitions) for _, _, old in moving))
            frame = by_goal(readers.mapInArrow(task.read, ROWS), goal.partitions)
            writing = frame.mapInArrow(task.write_moved, _COLUMNS)
        else:
            writing = self._numbers(goal.partitions).mapInArrow(task.write, _COLUMNS)
        with by_executors("rewritten the state"):
            found = writing.collect()
        stores: dict[bool, dict[tuple[int, str], WrittenStore]] = {False: {}, True: {}}
        for row in found:
            stores[row["again"]][row["partition"], row["store"]] = _store_of(row)
        return Written(goal, stores[False], stores[True])

    def read_back(self, written: Written, places: PlanPlaces) -> None:
        task = self._task(written.goal, places)

        def check(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for partition in _each(numbers):
                check_state(written.of(partition), open_files(task.target, task.storage))
                yield _rows(written.of(partition))

        with by_executors("read the new state back"):
            self._numbers(written.goal.partitions).mapInArrow(check, _COLUMNS).collect()
        if written.goal.keeps_rows:
            self._compare(task, written, places)

    def _compare(self, task: _Task, written: Written, places: PlanPlaces) -> None:
        """Read the old rows again: each must be among the written rows."""
        goal = written.goal
        old = [rows for _, _, rows in _old_rows(goal, self.old_state(goal, places.origin))]
        found = self._numbers(max(len(one.partitions) for one in old))
        read: dict[tuple[bool, str], Tally] = defaultdict(Tally)
        with by_executors("read the old state"):
            rows = found.mapInArrow(task.tallies, _COLUMNS).collect()
        for row in rows:
            read[row["again"], row["store"]] += _store_of(row).tally
        for again, stores in ((False, written.stores), (True, written.again)):
            mine = {store: total for (when, store), total in read.items() if when == again}
            require_same_rows(goal, mine, stores)

    def _task(self, goal: StateTarget, places: PlanPlaces) -> _Task:
        roots = places.origin.root, places.target.root
        return _Task(*roots, dict(self.storage or {}), goal, self.given_rows(goal))

    def _numbers(self, count: int) -> Any:
        return self.spark.range(0, count, 1, count)


def _store_of(row: Any) -> WrittenStore:
    files = tuple(FileInfo(*pair) for pair in zip(row["paths"], row["sizes"], strict=True))
    return WrittenStore(files, Tally(row["rows"], (int(row["first"]), int(row["second"]))))


def _each(numbers: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for piece in numbers:
        yield from piece.column(0).to_pylist()


def _old_rows(goal: StateTarget, state: OldState) -> Iterator[tuple[Part, int, OldRows]]:
    """Yield (part, batch, old rows) after each batch that is carried."""
    batches = [goal.batch] if goal.in_flight is None else [goal.batch, goal.in_flight]
    for part, batch in itertools.product(goal.parts, batches):
        old = None if part.given else state(part, batch)
        if old is not None:
            yield part, batch, old


def _moving(goal: StateTarget, state: OldState) -> Iterator[tuple[int, Part, OldRows]]:
    """Yield (kind, part, old rows) of all rows that change their partition."""
    for part, batch, old in _old_rows(goal, state):
        if old.moves:
            yield _kind(goal, part, batch), part, old


def _kind(goal: StateTarget, part: Part, batch: int) -> int:
    return 2 * goal.parts.index(part) + (batch == goal.in_flight)


@dataclass(frozen=True)
class _Task:
    """The work of an executor, which opens the checkpoints itself."""

    origin: str
    target: str
    storage: Mapping[str, Any]
    goal: StateTarget
    given: Given | None

    def write(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        old = self._old()
        for partition in _each(numbers):
            yield self._written(partition, old, {})

    def read(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np

        moving = list(_moving(self.goal, self._old()))
        for number in _each(numbers):
            if number == 0:
                goals = np.arange(self.goal.partitions)
                empty = row_bytes([b""] * len(goals))
                yield row_batch(Records(empty, empty, goals < 0), goals, _NOTHING)
            for kind, _, old in moving:
                if number < len(old.partitions):
                    for records, goals in old.placed(old.partitions[number]):
                        yield row_batch(records, goals, kind)

    def tallies(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what each old partition has for each store, in the form of written stores."""
        every = list(_old_rows(self.goal, self._old()))
        for number in _each(numbers):
            found: dict[int, dict[tuple[int, str], WrittenStore]] = {0: {}, 1: {}}
            for part, batch, old in every:
                if number < len(old.partitions):
                    total = sum(map(tally, old.rows(old.partitions[number])), Tally())
                    again = batch == self.goal.in_flight
                    found[again][number, part.store] = WrittenStore((), total)
            yield _rows(Written(self.goal, found[0], found[1]))

    def write_moved(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        old = self._old()
        for partition, group in itertools.groupby(slices(batches), lambda item: item[0]):
            rows: dict[int, list[Records]] = defaultdict(list)
            for _, kind, records in group:
                rows[kind].append(records)
            yield self._written(partition, old, rows)

    def _written(
        self, partition: int, old: OldState, rows: Mapping[int, list[Records]]
    ) -> pa.RecordBatch:
        goal = self.goal

        def moved(part: Part, batch: int) -> Callable[[int], Iterator[Records]]:
            return lambda _: iter(rows.get(_kind(goal, part, batch), ()))

        target = open_files(self.target, self.storage)
        return _rows(write_state(goal, target, old, self.given, [partition], moved))

    def _old(self) -> OldState:
        origin = open_files(self.origin, self.storage)
        return old_state(self.goal, origin, load(origin, Entries.ALL))


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
            # Spark has no type for unsigned 64-bit numbers.
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
