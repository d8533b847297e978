"""One file from one place to another, by the cheapest way that both places have.

On one disk it is a hard link: Spark never writes into a file that it has finished, it
puts a new one in its place. On one object store the store copies. Anything else goes
through this process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from floodmark.errors import FileGone
from floodmark.storage.files import Files, unreadable
from floodmark.storage.local import LocalFiles

_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES})


def copy_file(origin: Files, path: str, target: Files, to: str) -> None:
    """The whole file or nothing; replaces what is there."""
    if isinstance(origin, LocalFiles) and isinstance(target, LocalFiles):
        _copy_on_disk(f"{origin.folder}/{path}", f"{target.folder}/{to}", path)
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
    source, goal = f"{origin.folder}/{path}", f"{target.folder}/{to}"
    try:
        if "s3" not in target.fs.protocol:  # object stores have no folders
            target.fs.makedirs(goal.rsplit("/", 1)[0], exist_ok=True)
        origin.fs.cp_file(source, goal)
    except FileNotFoundError:
        raise FileGone(f"{path} is not there") from None
    except Exception as error:
        raise unreadable(to, error) from None
    return True


def _copy_on_disk(source: str, target: str, path: str) -> None:
    try:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        if not _linked(source, target):
            _copy_beside(Path(source), Path(target))
    except FileNotFoundError:
        raise FileGone(f"{path} is not there") from None
    except OSError as error:
        raise unreadable(target, error) from None


def _linked(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True


def _copy_beside(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{os.urandom(16).hex()}.tmp")
    shutil.copyfile(source, temporary)
    temporary.replace(target)


def drop_empty_folders(files: Files) -> None:
    """Folders that nothing is in any more, the root included. Object stores have none."""
    if not isinstance(files, LocalFiles):
        return
    for folder, _, _ in os.walk(files.folder, topdown=False):
        with contextlib.suppress(OSError):  # something is in it
            os.rmdir(folder)  # noqa: PTH106 - beside os.walk
