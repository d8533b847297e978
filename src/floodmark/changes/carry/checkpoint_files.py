"""Which files of a checkpoint folder belong to the checkpoint.

A crash leaves temporary files that nothing reads, Hadoop leaves hidden checksums that
are wrong beside any other content, and floodmark's own journal is about one place only.
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
    is_temporary,
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


def sidecar(path: str) -> str:
    """Hadoop's checksum of a file on a local disk. Left behind, it blocks the file's return."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def with_checksums(path: str, there: Container[str]) -> Iterator[str]:
    """A file that goes, and those of its checksums that are there and go with it.

    Hadoop's checksum alone would keep Spark from ever writing the name again.
    """
    names = (path, sidecar(path), f"{path}.crc", sidecar(f"{path}.crc"))
    for name in names if path.startswith(f"{STATE}/") else names[:2]:
        if name == path or name in there:
            yield name
