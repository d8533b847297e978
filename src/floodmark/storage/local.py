"""Local disk, by the operating system's own calls.

fsspec could do it too, but importing it takes longer than reading a checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import FileIO

from floodmark.checkpoint.layout import FileInfo
from floodmark.errors import FileGone, FloodmarkError
from floodmark.limits import Held, check_size
from floodmark.storage.files import Folder, Listing, is_a_file, unreadable

# Nearly every file of a log fits into the first read, so its size need not be asked.
_CHUNK = 1 << 16
_Failures = list[tuple[str, str]]


@dataclass(frozen=True)
class LocalFiles:
    root: str
    folder: str
    reads_cost: bool = False

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        failed: _Failures = []
        files = tuple(self._walk(folder, self.path_of(folder), failed, frozenset()))
        return Listing(files, not failed, tuple(failed))

    def _walk(
        self, relative: str, absolute: str, failed: _Failures, followed: frozenset[str]
    ) -> Iterator[FileInfo]:
        try:
            entries = list(os.scandir(absolute))
        except OSError as error:
            if not relative:
                raise self._no_folder(error) from None
            if not isinstance(error, FileNotFoundError):  # else removed while we walked
                failed.append((relative, error.strerror or str(error)))
            return
        prefix = relative + "/" if relative else ""
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir():
                links = followed
                if entry.is_symlink():
                    target = os.path.realpath(entry.path)
                    if target in followed or f"{os.path.realpath(absolute)}/".startswith(
                        target + "/"
                    ):
                        continue  # it leads back to where we are
                    links = followed | {target}
                yield from self._walk(path, entry.path, failed, links)
                continue
            try:
                found = entry.stat()
            except OSError:  # removed while we walked, or a dangling link
                continue
            yield FileInfo(path, found.st_size, found.st_mtime_ns // 1_000_000)

    def _no_folder(self, error: OSError) -> FloodmarkError:
        if isinstance(error, NotADirectoryError) and os.path.exists(self.folder):
            return is_a_file(self.root)
        return unreadable(self.root, error)

    def level(self, folder: str = "") -> Folder:
        try:
            entries = list(os.scandir(self.path_of(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return Folder((), ())
        except OSError as error:
            raise unreadable(self.path_of(folder), error) from None
        folders = {entry.name for entry in entries if entry.is_dir()}
        links = {entry.name for entry in entries if entry.name in folders and entry.is_symlink()}
        files = (entry.name for entry in entries if entry.name not in folders)
        return Folder(tuple(sorted(folders - links)), tuple(sorted(files)))

    def read(self, path: str) -> bytes:
        return _read(self.path_of(path), path)

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | FloodmarkError]:
        # A disk's small reads gain nothing from threads that share one interpreter lock.
        prefix = self.folder + "/"
        found: dict[str, bytes | FloodmarkError] = {}
        held = Held()
        for path in paths:
            try:
                found[path] = held.add(path, _read(prefix + path, path))
            except FloodmarkError as error:
                found[path] = error
        return found

    def write(self, path: str, data: bytes) -> None:
        with _refusals(path):
            temporary = self._write_beside(path, data)
            os.replace(temporary, self.path_of(path))

    def put(self, path: str, local: str) -> None:
        target = self.path_of(path)
        folder, name = os.path.split(target)
        temporary = os.path.join(folder, f".{name}.{os.urandom(16).hex()}.tmp")
        with _refusals(path):
            os.makedirs(folder, exist_ok=True)
            try:
                shutil.copyfile(local, temporary)
                _sync(temporary)
                os.replace(temporary, target)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise

    def create(self, path: str, data: bytes) -> bool:
        with _refusals(path):
            temporary = self._write_beside(path, data)
            try:
                os.link(temporary, self.path_of(path))
            except FileExistsError:
                return False
            finally:
                os.unlink(temporary)
        return True

    def _write_beside(self, path: str, data: bytes) -> str:
        target = self.path_of(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        folder, name = os.path.split(target)
        temporary = os.path.join(folder, f".{name}.{os.urandom(16).hex()}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with _refusals(path), contextlib.suppress(FileNotFoundError):
                os.unlink(self.path_of(path))

    def below(self, folder: str) -> LocalFiles:
        return LocalFiles(f"{self.root.rstrip('/')}/{folder}", self.path_of(folder))

    def path_of(self, relative: str) -> str:
        """On this machine's disk."""
        return f"{self.folder}/{relative}" if relative else self.folder


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _refusals(path: str) -> Iterator[None]:
    """What the operating system says against a change comes out as ours."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from None


def _read(absolute: str, relative: str) -> bytes:
    # os.read needs a third of the time of open().read() on the small files of a log.
    try:
        descriptor = os.open(absolute, os.O_RDONLY)
    except FileNotFoundError:
        raise FileGone(f"{relative} is not there") from None
    except OSError as error:
        raise unreadable(relative, error) from None
    try:
        data = os.read(descriptor, _CHUNK)
        if len(data) == _CHUNK:
            check_size(relative, os.fstat(descriptor).st_size)
            os.lseek(descriptor, 0, os.SEEK_SET)
            # It asks for the size first, so that a large file is not put together from pieces.
            data = FileIO(descriptor, closefd=False).readall()
    except OSError as error:
        raise unreadable(relative, error) from None
    finally:
        os.close(descriptor)
    return data
