"""Processes of this machine, told apart from later ones that were given the same number."""

from __future__ import annotations

import os
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
