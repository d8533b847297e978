"""Reads the notes of a query's starts, and finds the one that made the present state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from floodmark.checkpoint.layout import COMMITS, STARTS, FileInfo, batch_id, names_in
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.start_note import acting, is_note
from floodmark.errors import CannotRead, FloodmarkError
from floodmark.storage.files import Files


def acting_note(
    files: Files, committed: int | None, numbers: Sequence[int] | None = None
) -> dict[str, Any] | None:
    """Return the note of the start that committed last, as JSON data; None: it has no note.

    `numbers`: the notes to read, if a listing has shown them.
    """
    found = acting((note for _, note in _by_path(files, numbers)), committed)
    return None if found is None else dict(found)


def latest_note(files: Files) -> dict[str, Any] | None:
    """Return the acting note without a loaded checkpoint, by the newest commit's name."""
    numbers = (batch_id(name) for name in files.level(COMMITS).files)
    committed = max((number for number in numbers if number is not None), default=None)
    return acting_note(files, committed)


def note_numbers(files: Files) -> list[int]:
    return _numbers(files.level(STARTS).files)


def listed_numbers(files: Iterable[FileInfo]) -> list[int]:
    """Return the notes' numbers from a listing of the checkpoint."""
    return _numbers(names_in(files, STARTS))


def _numbers(names: Iterable[str]) -> list[int]:
    plain = (name.removesuffix(".json") for name in names)
    return sorted(number for name in plain if (number := batch_id(name)) is not None)


def start_batches(files: Files) -> Iterator[tuple[str, int]]:
    """Yield the path of each note, and the first batch of its start."""
    for path, note in _by_path(files):
        begun = note.get("next_batch")
        if isinstance(begun, int):
            yield path, begun


def _by_path(
    files: Files, numbers: Sequence[int] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield notes, newest first."""
    for number in reversed(note_numbers(files) if numbers is None else numbers):
        path = RelativePath(f"{STARTS}/{number}.json")
        try:
            value = json.loads(files.read(path))
        except CannotRead as error:
            if error.may_come:
                raise  # an older note would look like that of the last start
            continue
        except (FloodmarkError, ValueError, RecursionError):
            continue
        if is_note(value):
            yield path, value
