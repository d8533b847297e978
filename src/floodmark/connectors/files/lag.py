"""Counts the files that wait for a file source: listed ones, and ones it has not seen yet."""

from __future__ import annotations

from floodmark.checkpoint.layout import FileInfo
from floodmark.connectors.behind import Behind, PartLag, SourceLag, longest, total
from floodmark.connectors.files.file_log import SINK_LOG, SourceFile
from floodmark.connectors.files.input_folder import (
    address,
    listed_files,
    oldest_taken_ms,
    same_file,
)
from floodmark.connectors.files.live import read_source_log
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.lag import LagQuestion
from floodmark.errors import CannotRead, FloodmarkError

_FOLDERS_GUESSED = 100
_NO_ROWS = "Records are not counted: a listing shows only files and bytes."


def lag(question: LagQuestion) -> SourceLag:
    source = question.source.position
    kept_by = question.checkpoint.twin_of(source.id) or source.id
    seen = read_source_log(question.files, question.checkpoint, kept_by)
    done = -1 if source.offset is None else parse_log_offset(source.offset)
    end = max((file.batch_id for file in seen), default=done)
    pending = [file for file in seen if file.batch_id > done]
    places, notes = _places(question, seen)
    found, more = _listed(question, places)
    if found is None:
        behind = Behind()
        more.append(
            f"The source's own list has {_files(len(pending))} that no finished batch has read."
        )
    else:
        new, ignored = _new(question, seen, found)
        waiting = [*_waiting(pending, found), *new]
        behind = _behind(waiting, question.now_ms)
        more += _left_out(ignored, len(pending) + len(new) - len(waiting))
    place = ", ".join(places) or None
    part = PartLag(place or "the input folder", done + 1, end + 1, None, behind.records, behind.ms)
    return SourceLag(
        source.id, source.kind, behind, (part,), place=place, notes=(_NO_ROWS, *notes, *more)
    )


def _behind(waiting: list[FileInfo], now_ms: int) -> Behind:
    ages = (None if one.mtime_ms is None else max(0, now_ms - one.mtime_ms) for one in waiting)
    return Behind(
        None if waiting else 0,
        total(one.size if one.size >= 0 else None for one in waiting),
        longest(ages),
        None,
        len(waiting),
    )


def _left_out(ignored: int, gone: int) -> list[str]:
    notes = []
    if ignored:
        are = "is" if ignored == 1 else "are"
        notes.append(f"{_files(ignored)} {are} older than maxFileAge allows, and will not be read.")
    if gone:
        words = "is" if gone == 1 else "are"
        notes.append(f"{_files(gone)} that the next batch reads {words} no longer in the folder.")
    return notes


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"


def _places(
    question: LagQuestion, seen: tuple[SourceFile, ...]
) -> tuple[tuple[str, ...], list[str]]:
    """Return where the source reads: by the user's option, a note, or the files it has seen."""
    if question.places.input:
        return (question.places.input,), []
    noted = question.source.options.get("path", "")
    if noted.startswith("/") or ":/" in noted:
        return (noted,), []
    folders = sorted({address(file.path.rpartition("/")[0]) for file in seen})
    if not folders:
        return (), ["The input folder is not known. Give it: --input PATH."]
    # A relative path begins in the folder where the query was started.
    told = f"A note names {noted}, a relative path" if noted else "No note names the input folder"
    guess = (
        f"{told}, so floodmark looked at the folders of the files that the stream has read. "
        "--input PATH names another folder."
    )
    return tuple(folders[:_FOLDERS_GUESSED]), [guess]


def _listed(
    question: LagQuestion, places: tuple[str, ...]
) -> tuple[dict[str, FileInfo] | None, list[str]]:
    """Return the files in the folders, each under one name; None if no folder is known."""
    if not places:
        return None, []
    found: dict[str, FileInfo] = {}
    try:
        for place in places:
            for path, file in listed_files(place, question.source.options, question.opened):
                found[same_file(path)] = file._replace(path=path)
            if question.opened(place).level(SINK_LOG).files:
                words = (
                    f"{place} is the output of a file sink: the count includes files that are not "
                    "in the sink's list."
                )
                return found, [words]
    except FloodmarkError as error:
        raise CannotRead(error.what, error.why, error.do) from None
    return found, []


def _waiting(pending: list[SourceFile], found: dict[str, FileInfo] | None) -> list[FileInfo]:
    """Return files that the source has listed, no finished batch has read, and that still exist."""
    there = found or {}
    names = ((file, same_file(file.path)) for file in pending)
    return [
        FileInfo(file.readable_path, there[name].size, file.timestamp)
        for file, name in names
        if name in there
    ]


def _new(
    question: LagQuestion, seen: tuple[SourceFile, ...], found: dict[str, FileInfo]
) -> tuple[list[FileInfo], int]:
    """Return files that the source has not listed yet, and how many it will never list."""
    options = question.source.options
    known = {same_file(file.path) for file in seen}
    by_name = options.get("filenameonly", "").lower() == "true"
    names = {path.rpartition("/")[2] for path in known} if by_name else set()
    oldest = oldest_taken_ms(max((file.timestamp for file in seen), default=None), options)
    new, ignored = [], 0
    for path, file in found.items():
        if path in known or path.rpartition("/")[2] in names:
            continue
        if oldest is not None and file.mtime_ms is not None and file.mtime_ms < oldest:
            ignored += 1
        else:
            new.append(file)
    return new, ignored
