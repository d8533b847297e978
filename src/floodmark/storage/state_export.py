"""Batches of rows to a Parquet file that appears only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.errors import CannotRead, WrongUse

if TYPE_CHECKING:
    import pyarrow as pa


def export_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: str) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    beside = Path(f"{path}.{os.getpid()}.part")
    rows = 0
    try:
        with pq.ParquetWriter(beside, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        beside.replace(path)
    except pa.ArrowNotImplementedError as error:
        raise WrongUse(f"Parquet has no type for a column of this state: {error}") from None
    except OSError as error:
        raise CannotRead(f"{path} cannot be written: {error}") from None
    finally:
        beside.unlink(missing_ok=True)
    return rows
