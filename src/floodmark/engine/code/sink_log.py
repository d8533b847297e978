"""Asks a query's sink for the batches that it remembers, through Spark's own file systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.live_answers import SinkLog
from floodmark.connectors.delta import sink as delta_sink
from floodmark.connectors.files import sink as file_sink
from floodmark.connectors.sink_memory import DELTA_SINK, FILE_SINK, goes_by_number
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.errors import FloodmarkError, NotThere


def ask_sink(
    spark: Any, kind: str, options: Mapping[str, str], query_id: str | None
) -> SinkLog | None:
    """Return what the sink remembers; None for one that remembers nothing or has no path.

    A table of a catalog has no path. `options` are the writer's, with keys in lower case. Raises
    an error for a log that exists and cannot be read.
    """
    path = options.get("path")
    if path is None or not (kind == DELTA_SINK or goes_by_number(kind)):
        return None
    remembers = delta_sink if kind == DELTA_SINK else file_sink
    try:
        newest = remembers.remembered(checkpoint_files(spark, path)) or {}
    except NotThere:  # there is no output yet
        newest = {}
    if kind == DELTA_SINK:
        return SinkLog(path, DELTA_SINK, newest.get(query_id or ""))
    return SinkLog(path, FILE_SINK, newest.get(""))


def newest_in_sink(
    spark: Any, kind: str, options: Mapping[str, str], query_id: str | None
) -> int | None:
    """Return the sink's newest batch; None where it has none, or cannot be read."""
    try:
        found = ask_sink(spark, kind, options, query_id)
    except FloodmarkError:
        return None
    return found.newest if found is not None else None
