"""Writes on a local disk: a file gets its name when it is complete, with its source's modes.

Reading does not need this module: `local` loads it for writing.
"""

from __future__ import annotations

import contextlib
import os
import stat

from floodmark.checkpoint.relative_path import RelativePath
from floodmark.storage.descent import LINK, is_link, not_a_file, refused
from floodmark.storage.modes import PRIVATE, Modes, give_to_owner, set_mode, taken_over


def opened_to_append(path: RelativePath, name: str, parent: int) -> int:
    """Open a file of an open folder for appending; its other hard links stay unchanged."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    if is_link(name, parent):
        raise refused(path, LINK)
    descriptor = os.open(name, flags | os.O_CLOEXEC, PRIVATE.file, dir_fd=parent)
    if os.fstat(descriptor).st_nlink > 1:
        # Another name of it lies elsewhere, in a copy or in somebody's home: it stays.
        os.close(descriptor)
        os.unlink(name, dir_fd=parent)
        descriptor = os.open(name, flags | os.O_EXCL | os.O_CLOEXEC, PRIVATE.file, dir_fd=parent)
    why = not_a_file(os.fstat(descriptor).st_mode)
    if why is not None:
        os.close(descriptor)
        raise refused(path, why)
    give_to_owner(descriptor, parent)
    with contextlib.suppress(PermissionError):  # another user's, from an earlier run
        set_mode(descriptor, PRIVATE.file)
    return descriptor


def make_place(folder: str, modes: Modes | None) -> None:
    """Make a location's folder with its source's modes, and its parents with the user's umask."""
    parent = os.path.dirname(os.path.abspath(folder))
    os.makedirs(parent, exist_ok=True)
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        make_folder(os.path.basename(os.path.abspath(folder)), descriptor, modes)
    finally:
        os.close(descriptor)


def make_folder(name: str, parent: int, modes: Modes | None) -> None:
    mode = modes.folder if modes else stat.S_IMODE(os.fstat(parent).st_mode) & 0o777
    try:
        os.mkdir(name, mode, dir_fd=parent)
    except FileExistsError:
        return
    made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        if modes:
            set_mode(made, mode)
        give_to_owner(made, parent)
    finally:
        os.close(made)


class Beside:
    """A temporary file that gets its name when it is complete, or leaves nothing."""

    def __init__(self, folder: int, name: str, mode: int | None, new: int | None) -> None:
        """`mode`: None takes the mode of the replaced file, else `new`, else the folder's."""
        self._folder, self._name = folder, name
        self._temporary = f".{name}.{os.urandom(16).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        inherited = stat.S_IMODE(os.fstat(folder).st_mode) & 0o666
        exact = next(
            (one for one in (mode, _mode_of_file(name, folder), new) if one is not None), None
        )
        first = inherited if exact is None else PRIVATE.file
        self._file = os.open(self._temporary, flags, first, dir_fd=folder)
        self._there = True
        if exact is not None:
            set_mode(self._file, exact & 0o777)
        give_to_owner(self._file, folder)

    def fill(self, data: bytes) -> None:
        with open(self._file, "wb", closefd=False) as file:
            file.write(data)
        os.fsync(self._file)

    def take(self, source: int) -> None:
        from shutil import copyfileobj  # it brings three compressors along

        with (
            open(source, "rb", closefd=False) as read,
            open(self._file, "wb", closefd=False) as out,
        ):
            copyfileobj(read, out, 1 << 20)
        os.fsync(self._file)

    def replace(self) -> None:
        at = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
        os.replace(self._temporary, self._name, **at)
        self._there = False

    def link(self) -> bool:
        """Link the file to its name; return False, and change nothing, if the name exists."""
        at = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
        try:
            os.link(self._temporary, self._name, **at, follow_symlinks=False)
        except FileExistsError:
            return False
        return True

    def close(self) -> None:
        os.close(self._file)
        if self._there:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)


def _mode_of_file(name: str, folder: int) -> int | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return None
    return taken_over(found) if stat.S_ISREG(found) else None
