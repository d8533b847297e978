"""Sends rows of state, as the store keeps them, through Spark's shuffle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from floodmark.state.files.records import Records
from floodmark.state.rows.rowbytes import binary_array, from_binary

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = "goal int, kind int, key binary, value binary"
"""A row's target partition, and a number that its reader and its writer call its kind."""


def row_batch(records: Records, goals: Any, kind: int) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    columns = [
        pa.array(goals, pa.int32()),
        pa.array(np.full(len(records), kind, np.int32)),
        binary_array(records.keys),
        binary_array(records.values),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["goal", "kind", "key", "value"])


def by_goal(frame: Any, goals: int) -> Any:
    """Return the frame with each target's rows in one task, sorted by kind."""
    return frame.repartition(goals, "goal").sortWithinPartitions("goal", "kind")


def slices(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, Records]]:
    """Split batches that are sorted by goal and kind where either changes."""
    import numpy as np

    for batch in batches:
        goals, kinds = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        changes = (np.diff(goals) != 0) | (np.diff(kinds) != 0)
        bounds = [0, *(np.nonzero(changes)[0] + 1).tolist(), len(goals)]
        for first, last in itertools.pairwise(bounds):
            if first == last:
                continue
            keys, values = (
                from_binary(batch.column(at).slice(first, last - first)) for at in (2, 3)
            )
            rows = Records(keys, values, np.zeros(last - first, bool))
            yield int(goals[first]), int(kinds[first]), rows
