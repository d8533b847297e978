"""Keeps each batch's rows on this machine, in Parquet files, for reading them later.

The user's own sink gets no rows. A foreachBatch function is called only on request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.conf_keys import PARQUET_TIMES
from floodmark.errors import WrongUse
from floodmark.state.rows.values import plain

if TYPE_CHECKING:
    import pyarrow as pa

Function = Callable[[Any, int], Any]
_REMEMBERED = "_floodmark_foreach_batch"
PARQUET = {
    # Keep times of any year as they are, not in Hive's old calendar.
    PARQUET_TIMES: "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_NOT_IN_PARQUET = ("void", "interval")


@contextlib.contextmanager
def remembered_functions() -> Iterator[None]:
    """While an application is built, let its writers remember their foreachBatch functions."""
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    original = DataStreamWriter.foreachBatch

    def remember(self: Any, func: Function) -> Any:
        setattr(self, _REMEMBERED, func)
        return original(self, func)

    DataStreamWriter.foreachBatch = remember
    try:
        yield
    finally:
        DataStreamWriter.foreachBatch = original


def remembered_function(writer: Any) -> Function | None:
    return getattr(writer, _REMEMBERED, None)


class RowKeeper:
    """A foreachBatch function that writes one folder for each batch below `folder`."""

    def __init__(self, folder: Path, function: Function | None = None) -> None:
        self._folder = folder
        self._function = function
        self._names: dict[int, tuple[str, ...]] = {}

    def __call__(self, rows: Any, batch: int) -> None:
        if self._function is None:
            self._keep(rows, batch)
            return
        rows.persist()  # computed once for the files and the function
        try:
            self._keep(rows, batch)
            self._function(rows, batch)
        finally:
            rows.unpersist()

    def _keep(self, rows: Any, batch: int) -> None:
        self._names[batch] = distinct_names(rows.columns)
        numbered = rows.toDF(*(f"c{at}" for at in range(len(rows.columns))))
        kinds = [field.dataType.simpleString() for field in numbered.schema.fields]
        columns = [
            f"CAST(c{at} AS STRING) AS c{at}" if kind in _NOT_IN_PARQUET else f"c{at}"
            for at, kind in enumerate(kinds)
        ]
        numbered.selectExpr(*columns).write.mode("overwrite").parquet(f"file://{self._at(batch)}")

    def of(self, batch: int) -> BatchRows:
        return BatchRows(self._at(batch), self._names.get(batch, ()))

    def _at(self, batch: int) -> Path:
        return self._folder / str(batch)


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return distinct column names: a second column with the same name gets a number."""
    found: list[str] = []
    for name in names:
        number = 2
        chosen = name
        while chosen in found:
            chosen, number = f"{name}_{number}", number + 1
        found.append(chosen)
    return tuple(found)


@dataclass(frozen=True)
class BatchRows:
    """The rows that one batch gave to its sink."""

    folder: Path
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self._dataset().count_rows()) if self.names else 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if not self.names:
            return
        for batch in self._dataset().to_batches():
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(batch.columns, list(self.names))

    def _dataset(self) -> Any:
        from pyarrow import dataset

        return dataset.dataset(
            [str(one) for one in sorted(self.folder.glob("*.parquet"))], format="parquet"
        )

    def plain(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as plain JSON data."""
        for batch in self.batches():
            for at in range(batch.num_rows):
                yield {
                    name: plain(column[at])
                    for name, column in zip(self.names, batch.columns, strict=True)
                }

    def matching(self, key: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a key; only fields of the key that are columns here count."""
        own = {name: value for name, value in key.items() if name in self.names}
        if own:
            yield from (row for row in self.plain() if _has(row, own))

    def export(self, place: Path) -> int:
        """Write all rows to one Parquet file; return their number."""
        from pyarrow import parquet

        count, writer = 0, None
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            for batch in self.batches():
                if writer is None:
                    writer = parquet.ParquetWriter(place, batch.schema)
                writer.write_batch(batch)
                count += batch.num_rows
        except OSError as error:
            raise WrongUse(f"--export: {place} cannot be written: {error}") from None
        finally:
            if writer is not None:
                writer.close()
        return count


def _has(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(row[name] == value for name, value in wanted.items())
