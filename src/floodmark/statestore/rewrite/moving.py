"""Moves rows of an old state into the new one: reshapes them and finds their partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.state.files.records import Records
from floodmark.state.keys.grouping import grouping_of
from floodmark.state.rows.encoding import encode
from floodmark.state.rows.types import stored
from floodmark.state.shapes.operators import Reading
from floodmark.state.shapes.reshape import Reshaping
from floodmark.statestore.rewrite.goal import Part, ReshapeTarget, layout_of
from floodmark.statestore.rewrite.partitions import misplaced
from floodmark.statestore.rewrite.sorted_runs import Runs
from floodmark.statestore.view import StateView

if TYPE_CHECKING:
    import pyarrow as pa

    Rows = Iterator[tuple[pa.Array, pa.Array]]

Moved = Callable[[Part, int], Callable[[int], Iterator[Records]]]
"""A part and an old batch → a new partition → the rows that have come there, encoded."""


def moves(goal: ReshapeTarget, part: Part, view: StateView | None) -> bool:
    """True where the rows of a part come from other partitions of the old state."""
    if part.given or part.recipe is None or view is None:
        return False
    return not (keeps_hashes(part, view) and len(view.partitions) == goal.partitions)


def keeps_hashes(part: Part, view: StateView) -> bool:
    """True where Spark's hash of every key stays what it was: a wider type has another one."""
    assert part.recipe is not None
    before, after = (
        [stored(field.type) for field in grouping_of(reading).fields]
        for reading in (view.reading, part.reading)
    )
    return part.recipe.keeps_keys and before == after


def reshaped_rows(goal: ReshapeTarget, part: Part, view: StateView, partition: int) -> Rows:
    schema = part.reading.schema
    assert schema is not None
    assert part.recipe is not None
    where = f"operator {goal.operator}, {part.name}"
    reshaping = Reshaping(part.recipe, schema.key, schema.value, where)
    stays = keeps_hashes(part, view) and moves(goal, part, view)
    for keys, values in _stored_rows(view, partition):
        if stays:
            _require_at_home(view, partition, keys)
        yield reshaping.rows(keys, values)


def _require_at_home(view: StateView, partition: int, keys: pa.Array) -> None:
    """A key that only changes its partition must lie where its hash says, or who decides it?"""
    grouping, count = grouping_of(view.reading), len(view.partitions)
    if grouping.is_keyless or count == 1:
        return
    if bool((grouping.hashes(keys).view("i4") % count != partition).any()):
        raise misplaced(view, partition)


def _stored_rows(view: StateView, partition: int) -> Rows:
    """The rows of a partition as the store keeps them, not as a person sees them."""
    with view.at.open(partition) as opened:
        layout = view.layout(opened)
        for records in opened.records():
            keys, values = layout.decode(records)
            if len(keys):
                yield keys, values


def moving_rows(
    goal: ReshapeTarget, part: Part, view: StateView, partition: int
) -> Iterator[tuple[Records, Any]]:
    """An old partition's rows as the new store keeps them, and the new partition of each."""
    layout = layout_of(goal, part)
    for keys, values in reshaped_rows(goal, part, view, partition):
        records = encode(layout, keys, values, part.key_id, part.value_id)
        if layout.has_elements:  # a record holds all elements of its key
            stored_keys = records.keys if layout.family is None else records.keys.skip(2)
            keys = layout.decode_keys(stored_keys)
        yield records, _partitions_of(part.reading, keys, goal.partitions)


def sorted_out(goal: ReshapeTarget, part: Part, view: StateView, path: Path) -> Runs:
    """All rows of a part on this machine's disk, by their new partitions."""
    runs = Runs(path, goal.partitions)
    for partition in view.partitions:
        for records, goals in moving_rows(goal, part, view, partition):
            runs.add(records, goals)
    runs.close()
    return runs


def _partitions_of(reading: Reading, keys: pa.Array, partitions: int) -> Any:
    """The partition in which Spark will look for each key."""
    import numpy as np

    grouping = grouping_of(reading)
    if grouping.is_keyless or partitions == 1:
        return np.zeros(len(keys), np.int64)
    return grouping.hashes(keys).view("i4").astype(np.int64) % partitions
