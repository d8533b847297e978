"""What the file sink remembers: the numbers of its batches in `_spark_metadata`, of any query."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.connectors.files.file_log import SINK_LOG, log_id
from floodmark.storage.files import Files


def remembered(files: Files) -> Mapping[str, int] | None:
    """`` → the newest batch, of whatever query; None where the folder has no such log."""
    numbers = [
        number for name in files.level(SINK_LOG).files if (number := log_id(name)) is not None
    ]
    return {"": max(numbers)} if numbers else None
