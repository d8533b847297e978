"""Opens folders and files below a location without following links.

Each part of a path is opened from the folder before it, so a link that somebody puts into a
checkpoint leads nowhere, even during the work. The location itself is the user's choice, and may be
a link. Only regular files are opened: a named pipe would wait forever for its writer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from floodmark.checkpoint.relative_path import shown
from floodmark.errors import UnsafePath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INSIDE = _FOLDER | os.O_NOFOLLOW
# Without O_NONBLOCK, opening a named pipe waits until somebody writes into it.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_AT_ONCE = 64
LINK = "a link: links inside a folder are not followed, because they may lead anywhere"
_KINDS = {
    stat.S_IFLNK: LINK,
    stat.S_IFIFO: "a named pipe, not a file",
    stat.S_IFSOCK: "a socket, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
}
MakeFolder = Callable[[str, int], None]
"""Makes a folder with a name in an open folder."""


def not_a_file(mode: int) -> str | None:
    """Return why something is not read as a file; None for a regular file."""
    kind = stat.S_IFMT(mode)
    return None if kind == stat.S_IFREG else _KINDS.get(kind, "not a file")


def refused(path: str, why: str) -> UnsafePath:
    return UnsafePath(
        f"{shown(path)} is {why}",
        "A checkpoint's content must be inside it, as files and folders.",
        "Replace it by the file or folder itself, or remove it.",
    )


class Descent:
    """The open folders of one location, during one call."""

    def __init__(self, place: str, make: MakeFolder | None = None) -> None:
        self._place = place
        self._make = make
        self._open: dict[str, int] = {}

    def __enter__(self) -> Descent:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def folder(self, path: str) -> int:
        """Return a folder's descriptor, which this object closes; '' is the location itself."""
        open_part, rest = path, ""
        while open_part and open_part not in self._open:
            open_part, _, name = open_part.rpartition("/")
            rest = f"{name}/{rest}"
        found = self._open.get(open_part)
        if found is None:
            found = self._keep("", os.open(self._place, _FOLDER))
        for name in rest.split("/")[:-1]:
            open_part = f"{open_part}/{name}" if open_part else name
            found = self._keep(open_part, self._inside(found, name, open_part))
        return found

    def _keep(self, path: str, descriptor: int) -> int:
        if len(self._open) >= _OPEN_AT_ONCE:
            self.__exit__()
        self._open[path] = descriptor
        return descriptor

    def _inside(self, parent: int, name: str, path: str) -> int:
        try:
            return os.open(name, _INSIDE, dir_fd=parent)
        except FileNotFoundError:
            if self._make is None:
                raise
            self._make(name, parent)
            return os.open(name, _INSIDE, dir_fd=parent)
        except OSError:
            if is_link(name, parent):
                raise refused(path, LINK) from None
            raise

    def file(self, path: str) -> int:
        """Open a regular file for reading; the caller closes it."""
        folder, _, name = path.rpartition("/")
        parent = self.folder(folder)
        try:
            descriptor = os.open(name, _READ, dir_fd=parent)
        except OSError:
            if is_link(name, parent):
                raise refused(path, LINK) from None
            if (why := _odd_file(name, parent)) is not None:  # a socket cannot be opened
                raise refused(path, why) from None
            raise
        mode = os.fstat(descriptor).st_mode
        why = not_a_file(mode)
        if why is None:
            return descriptor
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "Is a directory", path)
        raise refused(path, why)


def is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _odd_file(name: str, folder: int) -> str | None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return None
    return None if stat.S_ISDIR(mode) else not_a_file(mode)
