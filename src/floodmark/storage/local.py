"""Reads and writes the local disk with the operating system's own calls.

fsspec could do it too, but importing it takes longer than reading a checkpoint.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import FileIO
from itertools import islice
from typing import TYPE_CHECKING

from floodmark.checkpoint.layout import METADATA, FileInfo
from floodmark.checkpoint.relative_path import (
    ODD_NAME,
    RelativePath,
    folder_path,
    is_name,
    shown,
)
from floodmark.errors import FileGone, FloodmarkError, UnsafePath
from floodmark.limits import Held, check_size
from floodmark.storage.descent import LINK, Descent, not_a_file
from floodmark.storage.files import Folder, Listing, is_a_file, unreadable

if TYPE_CHECKING:
    from floodmark.storage.beside import Beside
    from floodmark.storage.modes import Modes

# Nearly every log file fits into the first read, so its size is not needed.
_CHUNK = 1 << 16
_DEEPEST = 100
_Failures = list[tuple[str, str]]


@dataclass(frozen=True)
class LocalFiles:
    root: str
    folder: str
    """The folder that the user named; it may be a link, but nothing below it may be one."""
    within: str = ""
    """The part of the root that is below `folder`."""
    modes: Modes | None = None
    """The modes of new files; None: as in the folder."""

    reads_cost = False

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        failed: _Failures = []
        folder = folder_path(folder)
        files: tuple[FileInfo, ...] = ()
        with self.descent() as descent:
            try:
                walk = _walk(folder, descent.folder(self.inner(folder)), failed)
                files = tuple(islice(walk, most))
            except UnsafePath:
                if not folder:
                    raise
                failed.append((folder, LINK))
            except OSError as error:
                if not folder:
                    raise self._no_folder(error) from None
                if not isinstance(error, FileNotFoundError):
                    failed.append((folder, error.strerror or str(error)))
        return Listing(files, not failed and len(files) != most, tuple(failed))

    def _no_folder(self, error: OSError) -> FloodmarkError:
        if isinstance(error, NotADirectoryError) and os.path.exists(self.path_of("")):
            return is_a_file(self.root)
        return unreadable(self.root, error)

    def level(self, folder: str = "") -> Folder:
        folder = folder_path(folder)
        with self.descent() as descent:
            try:
                return _level(os.scandir(descent.folder(self.inner(folder))))
            except (FileNotFoundError, NotADirectoryError):
                return Folder((), ())
            except OSError as error:
                raise unreadable(self.path_of(folder), error) from None

    def read(self, path: RelativePath) -> bytes:
        with self.descent() as descent:
            return self._read(descent, path)

    def read_many(self, paths: Iterable[RelativePath]) -> dict[str, bytes | FloodmarkError]:
        # Threads that share one interpreter lock do not speed up a disk's small reads.
        found: dict[str, bytes | FloodmarkError] = {}
        held = Held()
        with self.descent() as descent:
            for path in paths:
                try:
                    found[path] = held.add(path, self._read(descent, path))
                except FloodmarkError as error:
                    found[path] = error
        return found

    def _read(self, descent: Descent, path: RelativePath) -> bytes:
        # os.read takes a third of the time of open().read() for the small files of a log.
        path = RelativePath(path)
        try:
            descriptor = descent.file(self.inner(path))
            try:
                data = os.read(descriptor, _CHUNK)
                if len(data) == _CHUNK:
                    check_size(path, os.fstat(descriptor).st_size)
                    os.lseek(descriptor, 0, os.SEEK_SET)
                    # Ask for the size first, so that a large file is not joined from pieces.
                    data = FileIO(descriptor, closefd=False).readall()
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            raise FileGone(f"{path} is not there") from None
        except NotADirectoryError as error:
            raise (
                is_a_file(self.root) if os.path.isfile(self.folder) else unreadable(path, error)
            ) from None
        except OSError as error:
            raise unreadable(path, error) from None
        return data

    def opened(self, descent: Descent, path: str) -> int:
        """Open a file; the caller closes the descriptor."""
        try:
            return descent.file(self.inner(path))
        except FileNotFoundError:
            raise FileGone(f"{path} is not there") from None
        except OSError as error:
            raise unreadable(path, error) from None

    def write(self, path: RelativePath, data: bytes, mode: int | None = None) -> None:
        """Write a file; `mode` is for a restored file, else the old file or the folder decides."""
        with self.beside(path, mode) as beside:
            beside.fill(data)
            beside.replace()

    def put(self, path: RelativePath, local: str) -> None:
        with self.beside(path) as beside:
            with open(local, "rb") as source:
                beside.take(source.fileno())
            beside.replace()

    def create(self, path: RelativePath, data: bytes) -> bool:
        with self.beside(path) as beside:
            beside.fill(data)
            return beside.link()

    @contextlib.contextmanager
    def beside(self, path: RelativePath, mode: int | None = None) -> Iterator[Beside]:
        """Yield a temporary file beside the path, which then replaces the path or is removed."""
        from floodmark.storage.beside import Beside
        from floodmark.storage.modes import PRIVATE, own

        path = RelativePath(path)
        with refusals(path), self.descent(path) as descent:
            inner = self.inner(path)
            folder, _, name = inner.rpartition("/")
            exact = PRIVATE.file if own(path) else mode
            new = self.modes.file if self.modes else None
            beside = Beside(descent.folder(folder), name, exact, new)
            try:
                yield beside
            finally:
                beside.close()

    def append_to(self, path: RelativePath) -> int:
        """Open a file for appending, and make it if it is missing; the caller closes it."""
        from floodmark.storage.beside import opened_to_append

        path = RelativePath(path)
        with refusals(path), self.descent(path) as descent:
            folder, _, name = self.inner(path).rpartition("/")
            return opened_to_append(path, name, descent.folder(folder))

    def delete(self, paths: Iterable[RelativePath]) -> None:
        with self.descent() as descent:
            for path in paths:
                folder, _, name = self.inner(RelativePath(path)).rpartition("/")
                with refusals(path), contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=descent.folder(folder))

    def below(self, folder: RelativePath) -> LocalFiles:
        within = self.inner(RelativePath(folder))
        return replace(self, root=f"{self.root.rstrip('/')}/{folder}", within=within)

    def path_of(self, relative: str) -> str:
        """Return a path on this machine's disk; opening it follows links: see `plain_path`."""
        inner = self.inner(folder_path(relative))
        return f"{self.folder}/{inner}" if inner else self.folder

    def plain_path(self, path: RelativePath) -> str | None:
        """Return the path of a regular file that is reached without a link; None: it is not one."""
        with self.descent() as descent:
            try:
                os.close(descent.file(self.inner(RelativePath(path))))
            except (OSError, FloodmarkError):
                return None
        return self.path_of(path)

    def folder_stamps(self, *folders: str) -> tuple[int | None, ...]:
        """Return a number for each folder that changes with its names; None: it does not exist."""
        with self.descent() as descent:
            return tuple(self._folder_stamp(descent, folder) for folder in folders)

    def _folder_stamp(self, descent: Descent, folder: str) -> int | None:
        try:
            return os.fstat(descent.folder(self.inner(folder_path(folder)))).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError, FloodmarkError):
            return None
        except OSError as error:
            raise unreadable(self.root, error) from None

    def file_info(self, path: RelativePath) -> FileInfo | None:
        """Return one file as a listing shows it; None: it does not exist, or is no file."""
        with self.descent() as descent:
            try:
                descriptor = descent.file(self.inner(RelativePath(path)))
            except (OSError, FloodmarkError):
                return None
        try:
            found = os.fstat(descriptor)
            return FileInfo(path, found.st_size, found.st_mtime_ns // 1_000_000)
        finally:
            os.close(descriptor)

    def tail(self, path: RelativePath, most: int) -> bytes:
        """Return the last bytes of a file that may be large."""
        with self.descent() as descent:
            try:
                descriptor = descent.file(self.inner(RelativePath(path)))
            except FileNotFoundError:
                raise FileGone(f"{path} is not there") from None
            except OSError as error:
                raise unreadable(path, error) from None
        with open(descriptor, "rb") as file:
            file.seek(max(os.fstat(descriptor).st_size - most, 0))
            return file.read(most)

    def mode_of(self, path: str = "") -> int | None:
        """Return the mode of a file or of the folder, for a copy; None: it does not exist."""
        from floodmark.storage.modes import taken_over

        with self.descent() as descent:
            try:
                if not path:
                    return taken_over(os.fstat(descent.folder(self.within)).st_mode)
                descriptor = descent.file(self.inner(RelativePath(path)))
            except (OSError, FloodmarkError):
                return None
        try:
            return taken_over(os.fstat(descriptor).st_mode)
        finally:
            os.close(descriptor)

    def with_modes(self, modes: Modes) -> LocalFiles:
        return replace(self, modes=modes)

    def own_modes(self) -> Modes | None:
        """Return the modes of the content, for a copy of it; None: there is no content yet."""
        from floodmark.storage.modes import Modes

        folder = self.mode_of()
        if folder is None:
            return None
        file = self.mode_of(METADATA)
        return Modes(folder & 0o666 & (0o666 if file is None else file), folder)

    def inner(self, path: str) -> str:
        """Return the path from the folder at which a descent begins."""
        return f"{self.within}/{path}" if self.within and path else path or self.within

    def descent(self, to_write: str | None = None) -> Descent:
        """Open what is below; make the missing folders of `to_write`."""
        if to_write is None:
            return Descent(self.folder)
        from floodmark.storage.beside import make_folder, make_place
        from floodmark.storage.modes import PRIVATE, own

        modes = PRIVATE if own(to_write) else self.modes
        if not os.path.isdir(self.folder):
            make_place(self.folder, self.modes)
        return Descent(self.folder, lambda name, parent: make_folder(name, parent, modes))


def _level(entries: Iterable[os.DirEntry[str]]) -> Folder:
    folders, files, others = [], [], []
    for entry in entries:
        if not is_name(entry.name):
            others.append((shown(entry.name), ODD_NAME))
        elif entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        elif entry.is_file(follow_symlinks=False):
            files.append(entry.name)
        else:
            others.append((entry.name, _kind(entry)))
    return Folder(tuple(sorted(folders)), tuple(sorted(files)), tuple(sorted(others)))


def _walk(relative: str, folder: int, failed: _Failures) -> Iterator[FileInfo]:
    """Yield every file below an open folder; each level of the walk keeps its folder open."""
    levels = [(relative, folder, _entries(folder))]
    try:
        while levels:
            parent, opened, entries = levels[-1]
            if not entries:
                levels.pop()
                if levels:
                    os.close(opened)
                continue
            entry = entries.pop()
            path = f"{parent}/{entry.name}" if parent else entry.name
            if not is_name(entry.name):
                failed.append((shown(path), ODD_NAME))
            elif entry.is_dir(follow_symlinks=False):
                below = _open_below(path, entry.name, opened, failed, len(levels))
                if below is not None:
                    levels.append((path, below, []))
                    levels[-1][2].extend(_entries(below))
            elif (file := _file(path, entry, failed)) is not None:
                yield file
    finally:
        for _, opened, _ in levels[1:]:
            os.close(opened)


def _entries(folder: int) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, the first one last."""
    return list(os.scandir(folder))[::-1]


def _file(path: str, entry: os.DirEntry[str], failed: _Failures) -> FileInfo | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # removed during the walk
        return None
    why = not_a_file(found.st_mode)
    if why is None:
        return FileInfo(path, found.st_size, found.st_mtime_ns // 1_000_000)
    failed.append((path, why))
    return None


def _open_below(path: str, name: str, parent: int, failed: _Failures, depth: int) -> int | None:
    if depth > _DEEPEST:
        failed.append((path, f"more than {_DEEPEST} folders deep"))
        return None
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if not isinstance(error, FileNotFoundError):  # else removed during the walk
            failed.append((path, error.strerror or str(error)))
        return None


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        return not_a_file(entry.stat(follow_symlinks=False).st_mode) or "not a file"
    except OSError:
        return "gone"


@contextlib.contextmanager
def refusals(path: str) -> Iterator[None]:
    """Turn the operating system's errors against a change into errors of floodmark."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from None
