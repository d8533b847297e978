"""Sets who may read new files on a local disk: never more people than could read the source.

The tool's own files (a checkpoint's `_floodmark`, repositories, plans, exports) can be read only by
its user. A copy has the modes of its source, a replaced file those of the file before it, and a
new file those of its folder.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from floodmark.checkpoint.layout import NOTES

# Never setuid, setgid or writable for everybody, whatever a stranger's file says.
_TAKEN_OVER = 0o775


@dataclass(frozen=True)
class Modes:
    file: int
    folder: int


PRIVATE = Modes(0o600, 0o700)


def own(path: str) -> bool:
    """Whether a file in a checkpoint is the tool's own."""
    return path == NOTES or path.startswith(f"{NOTES}/")


def taken_over(mode: int) -> int:
    """Return the mode of a copy, from the mode of its source."""
    return stat.S_IMODE(mode) & _TAKEN_OVER


def set_mode(descriptor: int, mode: int) -> None:
    """Set exactly this mode; a folder's inherited group stays."""
    now = os.fstat(descriptor).st_mode
    os.fchmod(descriptor, mode | (now & stat.S_ISGID if stat.S_ISDIR(now) else 0))


def give_to_owner(descriptor: int, folder: int) -> None:
    """Give a file that root writes to the folder's owner, whose query has to read it."""
    if os.geteuid() != 0:
        return
    owner, mine = os.fstat(folder), os.fstat(descriptor)
    if (owner.st_uid, owner.st_gid) != (mine.st_uid, mine.st_gid):
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def open_private(path: str, flags: int) -> int:
    """Open a file for open(): only its user can read a new file."""
    return os.open(path, flags, PRIVATE.file)
