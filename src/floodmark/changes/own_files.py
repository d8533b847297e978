"""Finds floodmark's own files that cannot be read, and that make every change refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from floodmark.changes import journal
from floodmark.checkpoint.layout import FileInfo, names_in
from floodmark.errors import CannotRead, FileGone, FloodmarkError
from floodmark.storage.files import Files
from floodmark.storage.lease_files import (
    EPOCHS,
    PATH,
    claim_path,
    epochs_of,
    read_claim,
    read_lease,
)


def unreadable(files: Files, listed: Iterable[FileInfo]) -> dict[str, str]:
    """Return path → reason, of the listed journals, the lease and the newest claim."""
    listed = tuple(listed)
    reads: dict[str, Callable[[], object]] = {
        f"{journal.FOLDER}/{name}": partial(journal.read_named, files, name)
        for name in names_in(listed, journal.FOLDER)
        if journal.is_record(name)
    }
    if any(file.path == PATH for file in listed):
        reads[PATH] = partial(read_lease, files)
    if epochs := epochs_of(names_in(listed, EPOCHS)):
        reads[claim_path(epochs[-1])] = partial(read_claim, files, epochs[-1])
    found = {}
    for path, read in reads.items():
        try:
            read()
        except FileGone:
            continue  # a run ended, or a change was forgotten, after the listing
        except FloodmarkError as error:
            found[path] = _reason(error)
    return found


def _reason(error: FloodmarkError) -> str:
    return f"{error.what}: {error.why}" if isinstance(error, CannotRead) else error.what
