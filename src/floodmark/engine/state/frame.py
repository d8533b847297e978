"""Reads state of any size as a DataFrame: one task for each partition, with the same codec.

The executors do the work: each opens the checkpoint's storage itself and decodes its own
partition. Only the plan passes through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from floodmark.state.rows.given_rows import gathered, given_value
from floodmark.state.rows.types import arrow_type, distinct
from floodmark.state.shapes.operators import Reading
from floodmark.state.shapes.reshape import Reshaping
from floodmark.statestore.open import open_state
from floodmark.statestore.rewrite.target import Part
from floodmark.storage.files import open_files
from floodmark.storage.load import load

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
    as_given: bool = False,
) -> DataFrame:
    """Return the rows of (partition, key, value) that `open_state` gives, spread over the cluster.

    `as_given`: return rows as functions take them, with a list's elements in one row.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    options = dict(storage or {})
    files = open_files(location, options)
    view = open_state(files, load(files), operator, store, batch, schema)
    # Choose the batch here: a running query must not change it between two tasks.
    asked = (operator, view.store, view.batch, schema)
    rows = view.arrow_schema
    if as_given:
        value = arrow_type(distinct(given_value(view.reading)))
        rows = rows.set(2, rows.field(2).with_type(value))

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        here = open_files(location, options)
        mine = open_state(here, load(here), *asked)
        for piece in numbers:
            for number in piece.column(0).to_pylist():
                for batch in mine.partition_batches(number):
                    yield _given(mine.reading, batch) if as_given else batch

    partitions = len(view.partitions)
    numbers = spark.range(0, partitions, 1, max(partitions, 1))
    return numbers.mapInArrow(read, from_arrow_schema(rows))


def _given(reading: Reading, batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    partitions, keys, values = batch.columns
    keys, values = gathered(reading, keys, values)
    columns = [partitions.slice(0, len(keys)), keys, values]
    return pa.RecordBatch.from_arrays(columns, names=["partition", "key", "value"])


def reshaped_frame(frame: DataFrame, part: Part, where: str) -> DataFrame:
    """Apply a part's recipe to rows of a key and a value."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema, recipe = part.reading.schema, part.recipe
    assert schema is not None
    assert recipe is not None
    reshaping = Reshaping(recipe, schema.key, schema.value, where)

    def reshape(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_arrays(list(reshaping.rows(*batch.columns)), schema=rows)

    import pyarrow as pa

    rows = pa.schema([("key", arrow_type(schema.key)), ("value", arrow_type(schema.value))])
    return frame.mapInArrow(reshape, from_arrow_schema(rows))
