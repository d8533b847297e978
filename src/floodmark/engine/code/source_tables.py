"""Finds which Delta tables new code reads, where no note of the last start names sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floodmark.checkpoint.start_note import LastStart
from floodmark.connectors.delta import table_log
from floodmark.connectors.registry import family, kind_named
from floodmark.engine.code.query import Source
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.errors import FloodmarkError


def read_tables(spark: Any, sources: Sequence[Source], last: LastStart | None) -> dict[int, str]:
    """Return the id of the table that each source reads, by the source's place in the code."""
    if last is not None and last.sources:
        return {}
    found = {}
    for at, source in enumerate(sources):
        if kind_named(family(source.kind)).names_table and source.path is not None:
            try:
                table = table_log.table_id(checkpoint_files(spark, source.path))
            except FloodmarkError:
                continue  # Spark refuses a table that cannot be read when the query starts
            if table is not None:
                found[at] = table
    return found
