"""Finds this machine's signs of a query: open files, JVMs, command lines, Spark UIs.

An open file proves a user. A machine without a JVM, on whose own disk the folder is, proves that
there is none. A JVM whose command line names the checkpoint, or whose Spark UI shows its query,
proves nothing, as a copy has the same query id; `signs_of_a_query` returns such signs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from floodmark.storage.files import Files
from floodmark.storage.local import LocalFiles
from floodmark.storage.machine.process import (
    all_jvms,
    command_of,
    open_files_of,
    parent_of,
    sees_every_process,
    working_folder_of,
)
from floodmark.storage.machine.spark_ui import ui_that_shows

# File systems of this machine's own disks; others may belong to another machine as well.
_OWN_DISKS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay"}


def lies_on_this_machine(files: Files) -> bool:
    """Whether times and processes of this machine are those of the folder."""
    folder = _folder(files)
    return folder is not None and (_disk_of(folder) or "ext4") in _OWN_DISKS


def user_here(files: Files) -> str | None:
    """Return a sentence about a process of this machine with open files of the query's folder."""
    folder = _folder(files)
    if folder is None:
        return None
    inside = f"{folder}/"
    for pid in all_jvms():
        for path in open_files_of(pid):
            if path.startswith(inside) and not path.startswith(f"{inside}_floodmark/"):
                return f"process {pid} (java) has {path.removesuffix(' (deleted)')} open"
    return None


def no_jvm_here(files: Files) -> bool:
    """Whether a query could run only on this machine, and no JVM runs here."""
    return lies_on_this_machine(files) and sees_every_process() and not any(all_jvms())


def signs_of_a_query(files: Files, query_id: str | None) -> tuple[str, ...]:
    """Return a sentence for each sign on this machine that a query uses the checkpoint."""
    found = [
        f"Process {pid} ({_what(command)}) has it in its command line."
        for pid, command in _drivers()
        if _names(files, command, working_folder_of(pid))
    ]
    page = ui_that_shows(query_id) if query_id else None
    return (*found, *([f"A Spark UI shows query {query_id} running: {page}."] if page else []))


def _drivers() -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield JVMs and the Python processes that started them; floodmark's own hold leases."""
    seen = {os.getpid(), os.getppid()}  # under spark-submit, the JVM is the parent
    for jvm in all_jvms():
        for pid in (jvm, parent_of(jvm) or jvm):
            command = () if pid in seen else command_of(pid)
            seen.add(pid)
            if command and all(part.rsplit("/", 1)[-1] != "floodmark" for part in command[:3]):
                yield pid, command


def _names(files: Files, command: tuple[str, ...], started_in: str | None) -> bool:
    folder = _folder(files)
    for part in command:
        value = part.rpartition("=")[2]
        if folder is None:
            # s3, s3a and s3n mean the same store.
            place = files.root.partition("://")[2].rstrip("/")
            if place and value.partition("://")[2].rstrip("/") == place:
                return True
        elif value and os.path.realpath(Path(started_in or "/", _local(value))) == folder:
            return True
    return False


def _local(value: str) -> str:
    return "/" + value[len("file:") :].lstrip("/") if value.startswith("file:") else value


def _what(command: tuple[str, ...]) -> str:
    """Return the program and its script; arguments may be secrets, and plans are kept."""
    script = next((part for part in command[1:] if part.endswith((".py", ".jar"))), None)
    return ", ".join(Path(one).name for one in (command[0], script) if one)


def _folder(files: Files) -> str | None:
    return os.path.realpath(files.folder) if isinstance(files, LocalFiles) else None


def _disk_of(folder: str) -> str | None:
    """Return the type of a folder's file system; None where the system does not say."""
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
