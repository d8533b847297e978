"""One folder on some storage, behind one small interface.

Paths given to `Files` are relative to its root, with `/` between their parts. Their type is
`RelativePath`, which no name can have that leads out of the root; the places make sure of it once
more when they run, since nobody checks the types of a caller's script.
There is no rename: object stores have none, so nothing above may need one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import CannotRead, FloodmarkError, NotACheckpoint, NotThere, WrongUse


@dataclass(frozen=True)
class Listing:
    files: tuple[FileInfo, ...]
    complete: bool = True
    unreadable: tuple[tuple[str, str], ...] = ()
    """What lies below and could not be listed, or is no file, as a link; each with the reason."""


@dataclass(frozen=True)
class Folder:
    """One level: the names of the folders and of the files right under a folder."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    others: tuple[tuple[str, str], ...] = ()
    """What is neither, as a link or a named pipe, with what it is."""


class Files(Protocol):
    """The readable half: whoever is given `Files` cannot change what lies there."""

    @property
    def root(self) -> str:
        """The place as its user wrote it."""

    @property
    def reads_cost(self) -> bool:
        """True where each read is a request over a network."""

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        """Every file below a folder. `most` may stop it early where listing costs requests."""

    def level(self, folder: str = "") -> Folder:
        """One level of a folder; an absent one is empty."""

    def read(self, path: RelativePath) -> bytes: ...

    def read_many(self, paths: Iterable[RelativePath]) -> dict[str, bytes | FloodmarkError]:
        """Many at once, in parallel where that helps; a failure stands in its place."""

    def below(self, folder: RelativePath) -> Files:
        """The same storage, rooted further down."""


class WritableFiles(Files, Protocol):
    """Both halves: for what carries out a plan, and for a lease or a note."""

    def write(self, path: RelativePath, data: bytes) -> None:
        """The whole file or nothing; replaces what is there."""

    def put(self, path: RelativePath, local: str) -> None:
        """As `write`, from a file on this machine's disk, which may be larger than memory."""

    def create(self, path: RelativePath, data: bytes) -> bool:
        """The whole file or nothing; False, and no change, if it is there already."""

    def delete(self, paths: Iterable[RelativePath]) -> None:
        """Gone already counts as deleted."""

    def below(self, folder: RelativePath) -> WritableFiles:
        """The same storage, rooted further down."""


def open_files(location: str, options: Mapping[str, Any] | None = None) -> WritableFiles:
    """The folder at a path or URL. Nothing is read yet."""
    if not location:
        raise WrongUse("the path is empty", do="Give a folder or a URL such as s3://bucket/folder.")
    path = local_path(location)
    if "\0" in (location if path is None else path):
        raise CannotRead(f"{location!r}: no path holds a null character", do="Check the path.")
    if path is not None:
        from floodmark.storage.local import LocalFiles

        return LocalFiles(location, path)
    from floodmark.secret_text import remember_all
    from floodmark.storage.remote import RemoteFiles

    remember_all(options or {})

    return RemoteFiles.open(location, dict(options or {}))


def local_path(location: str) -> str | None:
    """The path on this machine's disk, or None if the location is elsewhere.

    Hadoop writes `file:/x` as well as `file:///x`.
    """
    if location.startswith("file:"):
        from urllib.parse import unquote

        rest = location[len("file:") :]
        return unquote("/" + rest.lstrip("/") if rest.startswith("/") else rest)
    scheme, separator, _ = location.partition("://")
    return None if separator and scheme.replace("+", "").isalnum() else location


def plain_path(files: Files, path: RelativePath) -> str | None:
    """Where a regular file lies on this machine's disk, reached without a link; or None."""
    found = getattr(files, "plain_path", None)
    return found(path) if found is not None else None


def next_page(files: Files, after: str) -> Listing | None:
    """The next thousand files by name, after a name; None where storage does not list so."""
    found = getattr(files, "page", None)
    return found(after) if found is not None else None


def place_name(location: str) -> str:
    """One name for a place, however it is written; on this machine's disk, links are followed."""
    from os.path import realpath

    from floodmark.checkpoint.places.plain_place import plain_place

    path = local_path(location)
    return plain_place(location) if path is None else realpath(path)


def is_a_file(location: str) -> NotACheckpoint:
    return NotACheckpoint(
        f"{location} is a file, not a checkpoint folder",
        do="Give the folder that the query has as its checkpointLocation.",
    )


def unreadable(location: str, error: BaseException) -> CannotRead:
    """Storage's own complaint, in three parts."""
    if isinstance(error, FileNotFoundError):
        why = ""
        if location.startswith("file://") and not location.startswith("file:///"):
            why = "A file:// address is a whole path, from the root: file:///data/checkpoint."
        return NotThere(
            f"{location}: no such file or folder",
            why,
            "Check the path; relative paths start at the folder you are in.",
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
            "The storage knows the path and does not let this user in.",
            "Run as a user who may, or pass credentials with --storage KEY=VALUE.",
        )
    return CannotRead(
        f"{location}: the storage answered with an error",
        first_line(error),
        "Check the address and what --storage says; it may also be worth a second try.",
    )


def first_line(error: BaseException) -> str:
    """Of a driver's complaint, which may go on for a hundred."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
