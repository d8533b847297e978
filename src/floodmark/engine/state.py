"""State of any size as a DataFrame: one task a partition, read by the same codec.

The work is the executors': each opens the checkpoint's storage itself and decodes its own
partition, so nothing but the plan passes through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from floodmark.storage.files import open_files
from floodmark.storage.load import load
from floodmark.storage.state import open_state

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def state_frame(
    spark: SparkSession,
    location: str,
    operator: int = 0,
    store: str | None = None,
    batch: int | None = None,
    schema: tuple[str, str] | None = None,
    storage: Mapping[str, Any] | None = None,
) -> DataFrame:
    """The rows of (partition, key, value) that `open_state` gives, spread over the cluster."""
    from pyspark.sql.pandas.types import from_arrow_schema

    options = dict(storage or {})
    files = open_files(location, options)
    view = open_state(files, load(files), operator, store, batch, schema)
    # The batch is settled here: a running query must not move it between two tasks.
    asked = (operator, view.store, view.batch, schema)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        here = open_files(location, options)
        mine = open_state(here, load(here), *asked)
        for piece in numbers:
            for number in piece.column(0).to_pylist():
                yield from mine.partition_batches(number)

    partitions = len(view.partitions)
    numbers = spark.range(0, partitions, 1, max(partitions, 1))
    return numbers.mapInArrow(read, from_arrow_schema(view.arrow_schema))
