"""State written again by the executors: the same codec as in one process, a task a partition.

Each task opens the storage itself and reads its own partition; Spark's shuffle brings the
rows together that belong together, and each goal's rows are written by one task. Nothing
but the plan and the checksums passes through the driver.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from floodmark.changes.apply import PlanPlaces
from floodmark.changes.plan import Step
from floodmark.changes.repartition_rewriter import goal_of, number_of
from floodmark.checkpoint.model import Checkpoint
from floodmark.engine.state.shuffled_rows import ROWS, by_goal, row_batch, slices
from floodmark.state.files.records import Records
from floodmark.state.shapes.tally import Tally
from floodmark.statestore.rewrite.in_flight import rewrite_partition_again, write_partition_again
from floodmark.statestore.rewrite.partitions import (
    RewriteTarget,
    StoreToRewrite,
    compare,
    moves_rows,
    placed_rows,
    rewrite_partition,
    stores_of,
    style_of,
    tally_read,
    tally_written,
    write_partition,
)
from floodmark.storage.files import Files, WritableFiles, open_files
from floodmark.storage.load import Entries, load

if TYPE_CHECKING:
    import pyarrow as pa

    from floodmark.statestore.write import StoreFormat

_TALLIES = "goal int, rows bigint, first string, second string"


@dataclass(frozen=True)
class _Job:
    """What a task needs to know; it opens the places itself."""

    origin: str
    target: str
    storage: Mapping[str, Any]
    operator: int
    batch: int
    store: str
    goal: RewriteTarget
    since: int | None = None
    """The last committed batch, where `batch` was in flight: what it left becomes changes."""

    def opened(self) -> StoreToRewrite:
        return self._at(self.batch)

    def before(self) -> StoreToRewrite:
        assert self.since is not None
        return self._at(self.since)

    def _at(self, batch: int) -> StoreToRewrite:
        files = open_files(self.origin, self.storage)
        every = stores_of(files, _loaded(files, batch), self.operator, batch)
        return next(store for store in every if store.name == self.store)

    def target_files(self) -> WritableFiles:
        return open_files(self.target, self.storage)


def _loaded(files: Files, batch: int) -> Checkpoint:
    return load(files, Entries.NEWEST, [batch])


@dataclass
class SparkRewriter:
    """`repartition` and `convert` as jobs of a session."""

    spark: Any
    storage: Mapping[str, Any] | None = None

    def rewrite(self, step: Step, places: PlanPlaces) -> None:
        for job, store in self._jobs(step, places):
            conf = _conf(places.origin, job.batch)
            style = style_of(store if job.since is None else job.before(), job.goal, conf)
            if moves_rows(store, job.goal):
                self._move(job, store, style, places.target)
            else:
                work = _rewrite if job.since is None else _rewrite_again
                self._tallies(len(store.partitions), partial(work, job, style))

    def check(self, step: Step, places: PlanPlaces) -> None:
        for job, store in self._jobs(step, places):
            read = self._tallies(len(store.partitions), partial(_read, job))
            written = self._tallies(job.goal.count(store), partial(_read_back, job))
            compare(store, read, written)

    def _jobs(self, step: Step, places: PlanPlaces) -> Iterator[tuple[_Job, StoreToRewrite]]:
        operator, batch = number_of(step, "operator"), number_of(step, "batch")
        checkpoint = _loaded(places.origin, batch)
        since = step.how.get("since") if step.how is not None else None
        for store in stores_of(places.origin, checkpoint, operator, batch):
            yield (
                _Job(
                    places.origin.root,
                    places.target.root,
                    dict(self.storage or {}),
                    operator,
                    batch,
                    store.name,
                    goal_of(step),
                    since,
                ),
                store,
            )

    def _numbers(self, count: int) -> Any:
        return self.spark.range(0, count, 1, max(count, 1))

    def _tallies(self, count: int, work: Callable[[int], Tally]) -> Tally:
        """Does the work for every number, a task each, and adds up what it gives."""

        def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for piece in numbers:
                for number in piece.column(0).to_pylist():
                    yield _tally_row(number, work(number))

        rows = self._numbers(count).mapInArrow(run, _TALLIES).collect()
        return sum((_tally(row) for row in rows), Tally())

    def _move(
        self, job: _Job, store: StoreToRewrite, style: StoreFormat, target: WritableFiles
    ) -> None:
        count = job.goal.count(store)

        def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            stores = [job.opened(), *([job.before()] if job.since is not None else [])]
            for piece in numbers:
                for number in piece.column(0).to_pylist():
                    for earlier, mine in enumerate(stores):
                        for records, hashes in placed_rows(mine, number):
                            yield row_batch(records, hashes % count, earlier)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            mine, there = job.opened(), job.target_files()
            for goal, group in itertools.groupby(slices(batches), lambda item: item[0]):
                rows = ((bool(earlier), one) for _, earlier, one in group)
                _write(job, style, mine, goal, rows, there)
                yield _tally_row(goal, Tally())

        frame = self._numbers(len(store.partitions)).mapInArrow(read, ROWS)
        found = by_goal(frame, count).mapInArrow(write, _TALLIES).collect()
        written = {row["goal"] for row in found}
        for goal in set(range(count)) - written:
            # An empty partition has files, too.
            _write(job, style, store, goal, iter(()), target)


def _write(
    job: _Job,
    style: StoreFormat,
    store: StoreToRewrite,
    partition: int,
    rows: Iterator[tuple[bool, Records]],
    target: WritableFiles,
) -> None:
    """A partition of rows that have moved; True: those before the batch in flight."""
    if job.since is None:
        write_partition(store, partition, (one for _, one in rows), target, job.goal, style)
        return
    held: tuple[list[Records], list[Records]] = ([], [])
    for earlier, one in rows:
        held[0 if earlier else 1].append(one)
    write_partition_again(store, partition, held, target, job.goal, style)


def _rewrite(job: _Job, style: StoreFormat, partition: int) -> Tally:
    return rewrite_partition(job.opened(), partition, job.target_files(), job.goal, style)


def _rewrite_again(job: _Job, style: StoreFormat, partition: int) -> Tally:
    return rewrite_partition_again(
        job.before(), job.opened(), partition, job.target_files(), job.goal, style
    )


def _read(job: _Job, partition: int) -> Tally:
    return tally_read(job.opened(), partition)


def _read_back(job: _Job, partition: int) -> Tally:
    return tally_written(job.opened(), partition, job.target_files(), job.goal)


def _conf(files: Files, batch: int) -> dict[str, str]:
    entry = _loaded(files, batch).offsets.get(batch)
    return dict(entry.metadata.conf) if entry and entry.metadata else {}


def _tally_row(number: int, tally: Tally) -> pa.RecordBatch:
    import pyarrow as pa

    values = [[number], [tally.rows], *([str(half)] for half in tally.sums)]
    types = [pa.int32(), pa.int64(), pa.string(), pa.string()]
    columns = [pa.array(value, kind) for value, kind in zip(values, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=["goal", "rows", "first", "second"])


def _tally(row: Any) -> Tally:
    return Tally(row["rows"], (int(row["first"]), int(row["second"])))
