"""Identifies processes of this machine, also when a process number is reused."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Linux gives its first PID namespace this number: from there every process is visible.
_FIRST_NAMESPACE = "pid:[4026531836]"
_LARGEST_PID = 2**31 - 1


@dataclass(frozen=True)
class Process:
    pid: int
    started: int | None
    """The kernel's start time, if there is a /proc, as numbers are reused."""


def process(pid: int) -> Process:
    return Process(pid, _start_time(pid))


def this_process() -> Process:
    return process(os.getpid())


def is_running(known: Process) -> bool:
    if known.started is not None:
        return _start_time(known.pid) == known.started
    if not 0 < known.pid <= _LARGEST_PID:  # no system has such a process
        return False
    try:
        os.kill(known.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def family(pid: int) -> tuple[int, ...]:
    """Return the process and all its descendants, such as a driver's JVM, from Linux's /proc."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                found += map(int, children.read_text(encoding="ascii").split())
    return tuple(found)


def kill_family(pid: int) -> None:
    """Send SIGKILL to a driver's process group, and to its JVM, which has a group of its own."""
    members = family(pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for one in members[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def host_name() -> str:
    import socket  # half as long to import as a checkpoint takes to read

    return socket.gethostname()


def boot_id() -> str | None:
    """Return the id of this kernel's boot; None where the system does not have it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def pid_namespace() -> str | None:
    """Return the PID namespace, in which process numbers are valid; a container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except (OSError, NotImplementedError):
        return None


def sees_every_process() -> bool:
    return pid_namespace() == _FIRST_NAMESPACE and Path("/proc/1/stat").exists()


def all_processes() -> Iterator[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit())


def command_of(pid: int) -> tuple[str, ...]:
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(part.decode("utf-8", "replace") for part in data.split(b"\0") if part)


def all_jvms() -> Iterator[int]:
    for pid in all_processes():
        command = command_of(pid)
        if command and command[0].rsplit("/", 1)[-1] == "java":
            yield pid


def working_folder_of(pid: int) -> str | None:
    """Return the process's working folder; None where it may not be read."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
    except OSError:
        return None


def parent_of(pid: int) -> int | None:
    fields = _stat_fields(pid)
    return int(fields[1]) if len(fields) > 1 else None


def open_files_of(pid: int) -> Iterator[str]:
    """Yield the files that a process has open now; nothing where they may not be read."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, which may contain brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (OSError, ValueError):
        return []
    return text.rpartition(")")[2].split()


def _start_time(pid: int) -> int | None:
    fields = _stat_fields(pid)
    if len(fields) < 20 or fields[0] in "ZX":  # killed, but not reaped yet
        return None
    return int(fields[19])
