"""Represents one folder on any storage with one small interface.

Paths given to `Files` are relative to its root, with `/` between their parts. Their type is
`RelativePath`, which cannot lead out of the root; each storage checks this again at run time,
because nobody checks the types of a caller's script. There is no rename: object stores have none,
so no code above may need one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import ODD_NAME, RelativePath, is_name, is_path, shown
from floodmark.errors import CannotRead, FloodmarkError, NotACheckpoint, NotThere, WrongUse


@dataclass(frozen=True)
class Listing:
    files: tuple[FileInfo, ...]
    complete: bool = True
    unreadable: tuple[tuple[str, str], ...] = ()
    """Entries below that could not be listed, or are no file, such as a link, with the reason."""


@dataclass(frozen=True)
class Folder:
    """The names of the folders and files directly in a folder."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    others: tuple[tuple[str, str], ...] = ()
    """Other entries, such as a link or a named pipe, with their kind."""


def folder_of(entries: Iterable[tuple[str, bool]]) -> Folder:
    """Return a level of (name, whether it is a folder); odd names go to `others`."""
    named = sorted(entries)
    return Folder(
        tuple(name for name, is_folder in named if is_folder and is_name(name)),
        tuple(name for name, is_folder in named if not is_folder and is_name(name)),
        tuple((shown(name), ODD_NAME) for name, _ in named if not is_name(name)),
    )


def listing_of(found: Iterable[FileInfo], whole: bool) -> Listing:
    """Return a listing; `whole`: the storage has listed to the end. Odd names are unreadable."""
    files, odd = [], []
    for file in found:
        if is_path(file.path):
            files.append(file)
        else:
            odd.append((shown(file.path), ODD_NAME))
    return Listing(tuple(files), whole and not odd, tuple(odd))


class Files(Protocol):
    """The readable half: code that gets `Files` cannot change its content."""

    @property
    def root(self) -> str:
        """Return the location as its user wrote it."""

    @property
    def reads_cost(self) -> bool:
        """Whether each read is a request over a network."""

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        """List every file below a folder; `most` may stop early where listing costs requests."""

    def level(self, folder: str = "") -> Folder:
        """List one level of a folder; an absent folder is empty."""

    def read(self, path: RelativePath) -> bytes: ...

    def read_many(self, paths: Iterable[RelativePath]) -> dict[str, bytes | FloodmarkError]:
        """Read many files, in parallel where that helps; a failed read returns its error."""

    def below(self, folder: RelativePath) -> Files:
        """Return the same storage with a root further down."""


class WritableFiles(Files, Protocol):
    """Both halves, for executing a plan, and for a lease or a note."""

    def write(self, path: RelativePath, data: bytes) -> None:
        """Write the whole file or nothing; replace an existing file."""

    def put(self, path: RelativePath, local: str) -> None:
        """Write a file from this machine's disk, which may be larger than memory."""

    def create(self, path: RelativePath, data: bytes) -> bool:
        """Write the whole file or nothing; return False, and change nothing, if it exists."""

    def delete(self, paths: Iterable[RelativePath]) -> None:
        """Delete files; a file that does not exist counts as deleted."""

    def below(self, folder: RelativePath) -> WritableFiles:
        """Return the same storage with a root further down."""


def open_files(location: str, options: Mapping[str, Any] | None = None) -> WritableFiles:
    """Return the folder at a path or URL; this reads nothing yet."""
    if not location:
        raise WrongUse("the path is empty", do="Give a folder or a URL such as s3://bucket/folder.")
    path = local_path(location)
    _refuse_characters(location if path is None else path)
    if path is not None:
        from floodmark.storage.local import LocalFiles

        return LocalFiles(location, path)
    from floodmark.secret_text import remember_all
    from floodmark.storage.remote import RemoteFiles

    remember_all(options or {})

    return RemoteFiles.open(location, dict(options or {}))


def _refuse_characters(path: str) -> None:
    if "\0" in path:
        raise CannotRead(f"{path!r}: a path has no null character", do="Check the path.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise CannotRead(
            f"{path!r}: no file can have this name",
            "It holds half of a character.",
            "Check the path.",
        ) from None


def local_path(location: str) -> str | None:
    """Return the path on this machine's disk, or None if the location is elsewhere.

    Hadoop writes `file:/x` as well as `file:///x`.
    """
    if location.startswith("file:"):
        from urllib.parse import unquote

        rest = location[len("file:") :]
        return unquote("/" + rest.lstrip("/") if rest.startswith("/") else rest)
    scheme, separator, _ = location.partition("://")
    return None if separator and scheme.replace("+", "").isalnum() else location


def plain_path(files: Files, path: RelativePath) -> str | None:
    """Return the path of a regular file on this machine's disk, without links, or None."""
    found = getattr(files, "plain_path", None)
    return found(path) if found is not None else None


def next_page(files: Files, after: str) -> Listing | None:
    """Return the next thousand files after a name; None where storage cannot list by name."""
    found = getattr(files, "page", None)
    return found(after) if found is not None else None


def place_name(location: str) -> str:
    """Return one name for a location in any notation; on this machine's disk, follow links."""
    from os.path import realpath

    from floodmark.checkpoint.places.plain_place import plain_place

    path = local_path(location)
    _refuse_characters(location if path is None else path)
    return plain_place(location) if path is None else realpath(path)


def is_a_file(location: str) -> NotACheckpoint:
    do = "Give the folder that the query has as its checkpointLocation."
    if location.endswith((".yml", ".yaml")):
        do = "`floodmark inspect CP` shows the flows of a pipeline: give the folder of one."
    return NotACheckpoint(f"{location} is a file, not a checkpoint folder", do=do)


def unreadable(location: str, error: BaseException) -> CannotRead:
    """Return the storage's own complaint as an error with three parts."""
    if isinstance(error, FileNotFoundError):
        why = ""
        if location.startswith("file://") and not location.startswith("file:///"):
            why = "A file:// address is an absolute path: file:///data/checkpoint."
        return NotThere(
            f"{location}: no such file or folder",
            why,
            "Check the path; a relative path starts at the current folder.",
        )
    if isinstance(error, NotADirectoryError):
        return NotThere(
            f"{location}: no such file or folder",
            "A part of the path is a file, not a folder.",
            "Check the path.",
        )
    from floodmark.storage.complaints import known_complaint

    if (known := known_complaint(location, error)) is not None:
        return known
    if isinstance(error, PermissionError):
        return CannotRead(
            f"{location}: permission denied",
            "The storage knows the path, but does not allow this user to read it.",
            "Run as a user with access, or pass credentials with --storage KEY=VALUE.",
        )
    return CannotRead(
        f"{location}: the storage answered with an error",
        first_line(error),
        "Check the address and the options of --storage; it may also help to try again.",
    )


def first_line(error: BaseException) -> str:
    """Return the first line of a driver's complaint, which may have a hundred."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
