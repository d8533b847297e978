"""Decides which files of a checkpoint folder belong to the checkpoint.

A crash leaves temporary files that nothing reads. Hadoop's hidden checksums are wrong beside any
other content. Floodmark's own journal belongs to one location only.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from floodmark.checkpoint.layout import (
    COMMITS,
    METADATA,
    NOTES,
    OFFSETS,
    SOURCES,
    START_FILE,
    STARTS,
    STATE,
    FileInfo,
    batch_id,
    checksum_file,
    is_temporary,
    side_file,
)
from floodmark.connectors.delta.offset import is_schema_log

_LOGS = (OFFSETS, COMMITS)


def belongs(path: str) -> bool:
    folder, _, rest = path.partition("/")
    parts = path.split("/")
    if any(part.startswith(".") for part in parts) or is_temporary(parts[-1]):
        return False
    if folder in _LOGS:
        return batch_id(rest) is not None
    if folder == NOTES:
        return path.startswith(STARTS + "/") or path == START_FILE
    return path == METADATA or folder in (SOURCES, STATE) or is_schema_log(path)


def belonging(files: Iterable[FileInfo]) -> tuple[FileInfo, ...]:
    return tuple(file for file in files if belongs(file.path))


def with_checksums(path: str, there: Container[str]) -> Iterator[str]:
    """Yield a file that is removed, and its existing checksums, which go with it.

    Hadoop's checksum alone would keep Spark from ever writing this name again.
    """
    own = checksum_file(path)
    names = (path, side_file(path), own, side_file(own))
    for name in names if path.startswith(f"{STATE}/") else names[:2]:
        if name == path or name in there:
            yield name
