"""What a batch in flight has left of its state, written again as changes after the last commit.

It is not written as a snapshot: where the batch is run again, Spark replaces the changes, and
would go on preferring a snapshot beside them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.checkpoint.layout import store_folder
from floodmark.state.shapes.tally import Tally, tally
from floodmark.statestore.change_file import write_change
from floodmark.statestore.rewrite.partitions import (
    Counting,
    RewriteTarget,
    StoreToRewrite,
    conversion_of,
    moves_rows,
    placed_rows,
    style_of,
)
from floodmark.statestore.rewrite.sorted_runs import Runs
from floodmark.statestore.store import named
from floodmark.statestore.write import StoreFormat
from floodmark.storage.files import WritableFiles

if TYPE_CHECKING:
    from floodmark.state.files.records import Records


def rewrite_again(
    before: StoreToRewrite,
    after: StoreToRewrite,
    target: WritableFiles,
    goal: RewriteTarget,
    conf: Mapping[str, str],
) -> Tally:
    """Writes one store; gives the tally of `after`'s rows as they were read."""
    style = style_of(before, goal, conf)
    if not moves_rows(after, goal):
        parts = (
            rewrite_partition_again(before, after, at, target, goal, style)
            for at in after.partitions
        )
        return sum(parts, Tally())
    count = goal.count(after)
    with tempfile.TemporaryDirectory(prefix="floodmark-runs-") as place:
        old, _ = _sorted_out(before, Path(place, "before"), count)
        new, total = _sorted_out(after, Path(place, "after"), count)
        for at in range(count):
            write_partition_again(after, at, (old.rows(at), new.rows(at)), target, goal, style)
    return total


def _sorted_out(store: StoreToRewrite, path: Path, count: int) -> tuple[Runs, Tally]:
    runs, total = Runs(path, count), Tally()
    for partition in store.partitions:
        for records, hashes in placed_rows(store, partition):
            runs.add(records, hashes % count)
            total += tally(records)
    runs.close()
    return runs, total


def rewrite_partition_again(
    before: StoreToRewrite,
    after: StoreToRewrite,
    partition: int,
    target: WritableFiles,
    goal: RewriteTarget,
    style: StoreFormat,
) -> Tally:
    """One partition that stays what it is."""
    with (
        named(store_folder(after.at.operator, partition, after.name)),
        before.at.open(partition) as old,
        after.at.open(partition) as new,
    ):
        counted = Counting(new.records())
        forth = conversion_of(before, old, goal.provider), conversion_of(after, new, goal.provider)
        rows = (
            (forth[0].forth(records) for records in old.records()),
            (forth[1].forth(records) for records in counted),
        )
        write_partition_again(after, partition, rows, target, goal, style)
    return counted.total


def write_partition_again(
    store: StoreToRewrite,
    partition: int,
    rows: tuple[Iterable[Records], Iterable[Records]],
    target: WritableFiles,
    goal: RewriteTarget,
    style: StoreFormat,
) -> None:
    """`rows` are those before the batch, and those after it."""
    folder = store_folder(store.at.operator, partition, store.name)
    write_change(target, folder, goal.version, *rows, style)
