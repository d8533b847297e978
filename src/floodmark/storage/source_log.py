"""Reads the file source's logs of a checkpoint."""

from __future__ import annotations

from floodmark.checkpoint.layout import SOURCES, names_in
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.file_log import (
    SourceFile,
    merge_source_logs,
    missing_ids,
    names_to_read,
    parse_source_log,
)
from floodmark.errors import FloodmarkError, MalformedFile
from floodmark.storage.files import Files


def read_source_log(files: Files, checkpoint: Checkpoint, source: str) -> tuple[SourceFile, ...]:
    """Every file that a file source has seen."""
    folder = f"{SOURCES}/{source}"
    names = names_in(checkpoint.files, folder)
    missing = missing_ids(names)
    if missing:
        raise MalformedFile(
            f"{checkpoint.path}/{folder}: entry {missing[0]} of the file source's log is missing",
            "Without it the list of seen files has a hole, and Spark does not start either.",
            "Restore the file from a backup, or move on with `floodmark upgrade`.",
        )
    found = files.read_many(RelativePath(f"{folder}/{name}") for name in names_to_read(names))
    return merge_source_logs(
        {path.rsplit("/", 1)[1]: _parse(checkpoint, path, data) for path, data in found.items()}
    )


def seen_file(files: Files, checkpoint: Checkpoint, source: str) -> str | None:
    """A file that a file source has read: the last of its newest entry."""
    folder = f"{SOURCES}/{source}"
    names = names_to_read(names_in(checkpoint.files, folder))
    if not names:
        return None
    try:
        found = parse_source_log(files.read(RelativePath(f"{folder}/{names[-1]}")))
    except FloodmarkError:
        return None  # damage is the doctor's to tell
    return found[-1].readable_path if found else None


def _parse(
    checkpoint: Checkpoint, path: str, data: bytes | FloodmarkError
) -> tuple[SourceFile, ...]:
    if isinstance(data, FloodmarkError):
        raise data
    try:
        return parse_source_log(data)
    except MalformedFile as error:
        raise MalformedFile(
            f"{checkpoint.path}/{path}: {error.what}",
            error.why,
            error.do
            or "`floodmark doctor CP` says what to do about it; a backup may hold the file.",
        ) from None
