"""Writes rows to a Parquet file that appears only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.errors import WrongUse
from floodmark.storage.modes import open_private

if TYPE_CHECKING:
    import pyarrow as pa


def export_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: str) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(path).parent
    if not folder.is_dir():
        raise WrongUse(
            f"{path}: there is no folder {folder}",
            "floodmark writes the file only into an existing folder.",
            f"Create the folder first: mkdir -p {folder}",
        )
    beside = Path(f"{path}.{os.getpid()}.part")
    rows = 0
    try:
        written = _without_empty_structs(schema)
        # State is private: not everybody who can read the folder may read the file.
        beside.unlink(missing_ok=True)
        os.close(open_private(str(beside), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        with pq.ParquetWriter(beside, written, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(_fitted(batch, written))
                rows += batch.num_rows
        beside.replace(path)
    except pa.ArrowNotImplementedError as error:
        raise WrongUse(
            f"Parquet has no type for a column of this state: {error}",
            do="Get the rows as JSON: floodmark state CP --json.",
        ) from None
    except OSError as error:
        raise WrongUse(
            f"{path} cannot be written: {error.strerror or error}",
            do="Name a file in a folder that you may write to, with enough free space.",
        ) from None
    finally:
        beside.unlink(missing_ok=True)
    return rows


def _without_empty_structs(schema: pa.Schema) -> pa.Schema:
    """Replace structs without fields, which Parquet lacks (the key of a total over everything)."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(field.name, pa.null())
            if pa.types.is_struct(field.type) and field.type.num_fields == 0
            else field
            for field in schema
        ]
    )


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [
        pa.nulls(batch.num_rows) if pa.types.is_null(field.type) else column
        for field, column in zip(schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
