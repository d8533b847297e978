"""Reads what the file sink remembers: batch numbers in `_spark_metadata`, of any query."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.connectors.files.file_log import SINK_LOG, log_id
from floodmark.storage.files import Files


def remembered(files: Files) -> Mapping[str, int] | None:
    """Return {"": newest batch}, whichever query wrote it; None if the folder has no such log."""
    numbers = [
        number for name in files.level(SINK_LOG).files if (number := log_id(name)) is not None
    ]
    return {"": max(numbers)} if numbers else None
