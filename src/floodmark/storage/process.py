"""Processes of this machine, told apart from later ones that were given the same number."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    pid: int
    started: int | None
    """The kernel's start time, where there is a /proc: a number alone is used again."""


def process(pid: int) -> Process:
    return Process(pid, _start_time(pid))


def this_process() -> Process:
    return process(os.getpid())


def is_running(known: Process) -> bool:
    if known.started is not None:
        return _start_time(known.pid) == known.started
    try:
        os.kill(known.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def family(pid: int) -> tuple[int, ...]:
    """The process and all that it started; a driver's JVM is among them. By Linux's /proc."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it ended while we looked
                found += map(int, children.read_text(encoding="ascii").split())
    return tuple(found)


def kill_family(pid: int) -> None:
    """SIGKILL to a driver that leads a process group, and to its JVM, which has one of its own."""
    members = family(pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for one in members[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def host_name() -> str:
    import socket  # half as long to import as a checkpoint takes to read

    return socket.gethostname()


def _start_time(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name stands in brackets and may hold anything, brackets included.
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in "ZX":  # killed, and not yet waited for
        return None
    return int(fields[19])
