"""Stops this process and its children from writing elsewhere, with Linux's Landlock.

The fence holds for Python, the JVM, Python workers, native libraries and other programs, and
cannot be removed. Reading and connections stay free. Kernels before 5.19 and other systems have
no such fence: only the redirection in Python and Spark protects there (docs/proving.md).
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_RENAMES_BETWEEN_FOLDERS = 2
"""The first version that can allow such renames; without them Spark's file commits fail."""
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = sum(1 << bit for bit in range(4, 14))
"""Creating, removing and renaming of files, folders, links, sockets and devices."""
_DEVICES = ("/dev", "/proc")


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _Below(ctypes.Structure):
    _layout_ = "ms"  # as _pack_ has always meant; Python 3.14 wants it said
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def let_write_only_below(folders: Iterable[Path]) -> bool:
    """Fence this process permanently; return False where the kernel has no such fence."""
    if platform.system() != "Linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < _RENAMES_BETWEEN_FOLDERS:
        return False
    handled = _WRITE_FILE | _CHANGES | (_TRUNCATE if version > _RENAMES_BETWEEN_FOLDERS else 0)
    told = _Ruleset(handled)
    ruleset = libc.syscall(
        _CREATE_RULESET, ctypes.byref(told), ctypes.c_size_t(ctypes.sizeof(told)), 0
    )
    if ruleset < 0:
        return False
    try:
        for folder in folders:
            _allow(libc, ruleset, folder, handled)
        for name in _DEVICES:
            _allow(libc, ruleset, Path(name), _WRITE_FILE | (handled & _TRUNCATE))
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            return False
        return bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, folder: Path, access: int) -> None:
    try:
        place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = _Below(access, place)
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)
