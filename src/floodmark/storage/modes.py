"""Who may read what is written on a local disk: never more people than could read its source.

What is the tool's own (a checkpoint's `_floodmark`, repositories, plans, exports) is its user's
alone. A copy has the modes of what it is a copy of, a replaced file those of the file before it,
and a new file those of the folder that it lies in.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from floodmark.checkpoint.layout import NOTES

# Neither setuid nor setgid, nor writable for everybody, whatever a stranger's file says.
_TAKEN_OVER = 0o775


@dataclass(frozen=True)
class Modes:
    file: int
    folder: int


PRIVATE = Modes(0o600, 0o700)


def own(path: str) -> bool:
    """True for the tool's own files in a checkpoint."""
    return path == NOTES or path.startswith(f"{NOTES}/")


def taken_over(mode: int) -> int:
    """The mode of a copy, by that of its source."""
    return stat.S_IMODE(mode) & _TAKEN_OVER


def set_mode(descriptor: int, mode: int) -> None:
    """Sets exactly this mode; a folder's group that is handed down stays so."""
    now = os.fstat(descriptor).st_mode
    os.fchmod(descriptor, mode | (now & stat.S_ISGID if stat.S_ISDIR(now) else 0))


def give_to_owner(descriptor: int, folder: int) -> None:
    """What root writes into somebody's folder is that user's: their query has to read it."""
    if os.geteuid() != 0:
        return
    owner, mine = os.fstat(folder), os.fstat(descriptor)
    if (owner.st_uid, owner.st_gid) != (mine.st_uid, mine.st_gid):
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def open_private(path: str, flags: int) -> int:
    """An opener for open(): a new file is its user's alone."""
    return os.open(path, flags, PRIVATE.file)
