"""Copies one file to another location, in the cheapest way that both locations support.

On one disk it is a hard link: Spark never writes into a finished file, it replaces the file by a
new one. On one object store, the store copies. Any other copy goes through this process. A copy
on a disk has the mode of its source.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any

from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import FileGone
from floodmark.storage.files import Files, WritableFiles, unreadable
from floodmark.storage.local import LocalFiles, refusals
from floodmark.storage.modes import PRIVATE, Modes, taken_over

# What S3 copies with one request.
_ONE_COPY = 5 * 10**9
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES})


def copy_file(origin: Files, path: str, target: WritableFiles, to: str) -> None:
    """Copy the whole file or nothing; replace an existing file."""
    path, to = RelativePath(path), RelativePath(to)
    if isinstance(origin, LocalFiles) and isinstance(target, LocalFiles):
        _copy_on_disk(origin, path, target, to)
    elif not _copied_by_store(origin, path, target, to):
        target.write(to, origin.read(path))


def _copied_by_store(origin: Files, path: str, target: Files, to: str) -> bool:
    if isinstance(origin, LocalFiles) or isinstance(target, LocalFiles):
        return False
    from floodmark.storage.remote import RemoteFiles

    if not (isinstance(origin, RemoteFiles) and isinstance(target, RemoteFiles)):
        return False
    if origin.fs is not target.fs:
        return False
    source, goal = origin.file_path(RelativePath(path)), target.file_path(RelativePath(to))
    try:
        if target.is_webhdfs:
            from floodmark.storage import webhdfs  # other storage never needs it

            webhdfs.copy_file(origin.fs, source, goal)
        elif "s3" not in target.fs.protocol:  # object stores have no folders
            target.fs.makedirs(goal.rsplit("/", 1)[0], exist_ok=True)
            origin.fs.cp_file(source, goal)
        elif origin.large.get(source, 0) > _ONE_COPY or not _copied_by_s3(origin.fs, source, goal):
            origin.fs.cp_file(source, goal)
    except FileNotFoundError:
        raise FileGone(f"{path} is not there") from None
    except Exception as error:
        raise unreadable(to, error) from None
    return True


def _copied_by_s3(fs: Any, source: str, goal: str) -> bool:
    """Copy with one request: s3fs would first ask for the size, which costs as much as the copy."""
    bucket, key, _ = fs.split_path(source)
    to_bucket, to_key, _ = fs.split_path(goal)
    origin = {"Bucket": bucket, "Key": key}
    try:
        fs.call_s3("copy_object", Bucket=to_bucket, Key=to_key, CopySource=origin)
    except FileNotFoundError:
        raise
    except OSError:
        return False  # larger than one request copies, say: s3fs copies it in parts
    return True


def _copy_on_disk(origin: LocalFiles, path: str, target: LocalFiles, to: str) -> None:
    with origin.descent() as descent:
        source = origin.opened(descent, path)
        try:
            folder, _, name = origin.inner(path).rpartition("/")
            if not _linked(source, descent.folder(folder), name, target, to):
                mode = taken_over(os.fstat(source).st_mode)
                with target.beside(RelativePath(to), mode) as beside:
                    beside.take(source)
                    beside.replace()
        finally:
            os.close(source)


def _linked(source: int, folder: int, name: str, target: LocalFiles, to: str) -> bool:
    """Whether the open file itself got another name in the target."""
    with refusals(to), target.descent(to) as descent:
        parent, _, goal = target.inner(to).rpartition("/")
        at = descent.folder(parent)
        try:
            os.link(name, goal, src_dir_fd=folder, dst_dir_fd=at, follow_symlinks=False)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        if os.path.samestat(os.fstat(source), os.stat(goal, dir_fd=at, follow_symlinks=False)):
            return True
        os.unlink(goal, dir_fd=at)  # something else took the name after it was opened
        return False


def restore_file(target: WritableFiles, path: str, data: bytes, mode: int | None) -> None:
    """Write a file with the mode that it had when it was stored, if the storage has modes."""
    if isinstance(target, LocalFiles):
        target.write(RelativePath(path), data, None if mode is None else taken_over(mode) & 0o666)
    else:
        target.write(RelativePath(path), data)


def private(files: WritableFiles) -> WritableFiles:
    """Return the same location, where new files can be read only by this user."""
    return files.with_modes(PRIVATE) if isinstance(files, LocalFiles) else files


def with_modes_of(files: WritableFiles, source: Files) -> WritableFiles:
    """Return the same location, where new files and folders get the modes of `source`."""
    if not (isinstance(files, LocalFiles) and isinstance(source, LocalFiles)):
        return files
    modes = source.own_modes()
    return files if modes is None else files.with_modes(modes)


def with_folder_mode(files: WritableFiles, mode: object) -> WritableFiles:
    """Return the same location, where new folders get this mode; private if it is no mode."""
    if not isinstance(files, LocalFiles):
        return files
    known = taken_over(mode) | 0o700 if isinstance(mode, int) else PRIVATE.folder
    return files.with_modes(Modes(known & 0o666, known))


def mode_of(files: Files, path: str = "") -> int | None:
    """Return the mode of a file or of the location itself; None where storage has no modes."""
    return files.mode_of(path) if isinstance(files, LocalFiles) else None


def drop_empty_folders(files: Files) -> None:
    """Remove empty folders, including the root; object stores have none."""
    if not isinstance(files, LocalFiles):
        return
    place = files.path_of("")
    for _, folders, _, descriptor in os.fwalk(place, topdown=False, follow_symlinks=False):
        for name in folders:
            with contextlib.suppress(OSError):  # it is not empty, or it is a link
                os.rmdir(name, dir_fd=descriptor)
    with contextlib.suppress(OSError):
        os.rmdir(place)  # noqa: PTH106 - beside os.fwalk
