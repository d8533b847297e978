"""Reads the file source's list of seen files, and asks which of them still exist."""

from __future__ import annotations

from urllib.parse import unquote

from floodmark.checkpoint.layout import SOURCES, names_in
from floodmark.checkpoint.live_answers import LiveAnswers
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.file_log import (
    SourceFile,
    merge_source_logs,
    missing_ids,
    names_to_read,
    parse_source_log,
)
from floodmark.connectors.files.input_folder import address
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.live import Open, Question
from floodmark.connectors.source import SourceOffset
from floodmark.errors import FloodmarkError, MalformedFile
from floodmark.storage.files import Files

_FILES_LOOKED_AT = 2000


def ask(question: Question) -> LiveAnswers:
    """Return the missing files that the next batch reads."""
    position = question.source.position
    gone = _inputs(question.files, question.checkpoint, position, question.opened, question.done)
    return LiveAnswers(inputs={position.id: gone})


def read_source_log(files: Files, checkpoint: Checkpoint, source: str) -> tuple[SourceFile, ...]:
    """Return every file that a file source has seen."""
    folder = f"{SOURCES}/{source}"
    names = names_in(checkpoint.files, folder)
    missing = missing_ids(names)
    if missing:
        raise MalformedFile(
            f"{checkpoint.path}/{folder}: entry {missing[0]} of the file source's log is missing",
            "The list of seen files has a gap there, and Spark does not start either.",
            "Restore the file from a backup, or move on with `floodmark upgrade`.",
        )
    found = files.read_many(RelativePath(f"{folder}/{name}") for name in names_to_read(names))
    return merge_source_logs(
        {path.rsplit("/", 1)[1]: _parse(checkpoint, path, data) for path, data in found.items()}
    )


def seen_file(files: Files, checkpoint: Checkpoint, source: str) -> str | None:
    """Return a file that a file source has read: the last of its newest entry."""
    folder = f"{SOURCES}/{source}"
    names = names_to_read(names_in(checkpoint.files, folder))
    if not names:
        return None
    try:
        found = parse_source_log(files.read(RelativePath(f"{folder}/{names[-1]}")))
    except FloodmarkError:
        return None  # the doctor reports damage
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


def _inputs(
    files: Files, checkpoint: Checkpoint, source: SourceOffset, opened: Open, done: int | None
) -> tuple[str, ...]:
    """Return the missing files after the last finished batch: in flight, or seen and waiting."""
    if done is None:
        done = -1 if source.offset is None else parse_log_offset(source.offset)
    seen = read_source_log(files, checkpoint, source.id)
    pending = [file for file in seen if file.batch_id > done][:_FILES_LOOKED_AT]
    by_folder: dict[str, list[SourceFile]] = {}
    for file in pending:
        by_folder.setdefault(file.path.rpartition("/")[0], []).append(file)
    gone: list[str] = []
    for folder, listed in by_folder.items():
        there = set(opened(address(folder)).level().files)
        gone += [
            file.readable_path
            for file in listed
            if unquote(file.path.rpartition("/")[2]) not in there
        ]
    return tuple(gone)
