"""What this machine knows of a folder: who has its files open, whether a JVM runs at all.

Only what proves something is said: an open file, or a machine on whose own disk the folder
lies and that runs no JVM. A running JVM proves nothing, as it names its checkpoints nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from floodmark.storage.files import Files
from floodmark.storage.local import LocalFiles
from floodmark.storage.process import (
    all_processes,
    command_of,
    open_files_of,
    sees_every_process,
)

# Disks of one machine; what is not named here may be another machine's as well.
_OWN_DISKS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay"}


def lies_on_this_machine(files: Files) -> bool:
    """Whether times and processes of this machine are those of the folder."""
    folder = _folder(files)
    return folder is not None and (_disk_of(folder) or "ext4") in _OWN_DISKS


def user_here(files: Files) -> str | None:
    """A process of this machine that has files of the folder open for its query, in words."""
    folder = _folder(files)
    if folder is None:
        return None
    inside = f"{folder}/"
    for pid in _jvms():
        for path in open_files_of(pid):
            if path.startswith(inside) and not path.startswith(f"{inside}_floodmark/"):
                return f"process {pid} (java) has {path.removesuffix(' (deleted)')} open"
    return None


def no_jvm_here(files: Files) -> bool:
    """True where a query could run on this machine only, and no JVM does."""
    return lies_on_this_machine(files) and sees_every_process() and not any(_jvms())


def _folder(files: Files) -> str | None:
    return os.path.realpath(files.folder) if isinstance(files, LocalFiles) else None


def _jvms() -> Iterator[int]:
    for pid in all_processes():
        command = command_of(pid)
        if command and command[0].rsplit("/", 1)[-1] == "java":
            yield pid


def _disk_of(folder: str) -> str | None:
    """The type of the file system that a folder lies on; None where the system does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    best, kind = "", None
    for line in lines.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = fields[4].replace("\\040", " ")
        if len(point) >= len(best) and f"{folder}/".startswith(point.rstrip("/") + "/"):
            best, kind = point, after.split(" ", 1)[0]
    return kind
