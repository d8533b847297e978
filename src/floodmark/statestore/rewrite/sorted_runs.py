"""Sorts rows by their goals, and keeps them on disk until each goal reads its own.

Every piece of rows is one run, sorted by goal; a goal reads its slice of every run. One file, which
is mapped into memory and never read whole, serves any number of goals.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.state.files.records import Records
from floodmark.state.rows.rowbytes import binary_array, from_binary

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE = 50_000


class Runs:
    def __init__(self, path: Path, goals: int) -> None:
        import pyarrow as pa

        self._path = path
        self._goals = goals
        self._schema = pa.schema([("key", pa.binary()), ("value", pa.binary())])
        self._writer = pa.ipc.new_file(str(path), self._schema)
        self._bounds: list[Any] = []
        self._file: Any = None

    def add(self, records: Records, goals: Any) -> None:
        import numpy as np
        import pyarrow as pa

        order = np.argsort(goals, kind="stable")
        columns = [binary_array(records.keys), binary_array(records.values)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._writer.write_batch(batch.take(pa.array(order)))
        self._bounds.append(np.searchsorted(goals[order], np.arange(self._goals + 1)))

    def close(self) -> None:
        """End the writing."""
        self._writer.close()

    def rows(self, goal: int) -> Iterator[Records]:
        import pyarrow as pa

        # The mapping is not closed here, because callers may still hold rows from it.
        with self._path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            runs = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
            held: list[pa.RecordBatch] = []
            count = 0
            for number, bounds in enumerate(self._bounds):
                first, last = int(bounds[goal]), int(bounds[goal + 1])
                if first == last:
                    continue
                held.append(runs.get_batch(number).slice(first, last - first))
                count += last - first
                if count >= _PIECE:
                    found = _records(held)
                    held, count = [], 0
                    # Otherwise all pages that were read would count as this process's memory.
                    if hasattr(mmap, "MADV_DONTNEED"):
                        mapped.madvise(mmap.MADV_DONTNEED)
                    yield found
            if held:
                yield _records(held)


def _records(batches: list[pa.RecordBatch]) -> Records:
    import numpy as np
    import pyarrow as pa

    keys, values = (
        from_binary(pa.concat_arrays([batch.column(at) for batch in batches])) for at in range(2)
    )
    return Records(keys, values, np.zeros(len(keys), bool))
