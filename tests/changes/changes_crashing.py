"""Dies at the k-th change of storage, as a killed process does: nothing after it happens.

On a local disk it is the system's calls that are counted, so each half-done write is a
place to die at; on other storage it is the driver's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fsspec


class Killed(BaseException):
    """No except clause of the project catches it, and no finally gets anything done."""


class Countdown:
    def __init__(self, at: int | None) -> None:
        self.at = at
        self.count = 0
        self._turn = threading.Lock()

    def step(self) -> None:
        with self._turn:  # a new checkpoint's files are copied by several threads
            self.count += 1
            if self.at is not None and self.count >= self.at:
                raise Killed


LOCAL = ("replace", "link", "unlink", "mkdir", "rmdir", "fsync")
REMOTE = ("pipe_file", "cp_file", "rm_file", "makedirs")


@contextmanager
def dying(at: int | None, remote: Any = None) -> Iterator[Countdown]:
    """Dies before the `at`-th change; None only counts them. `remote` is a driver of fsspec."""
    countdown = Countdown(at)
    patched: list[tuple[Any, str, Any]] = []
    if remote is None:
        patched += [(os, name, getattr(os, name)) for name in LOCAL]
        remote = type(fsspec.filesystem("memory"))
    patched += [(remote, name, getattr(remote, name)) for name in REMOTE]
    for owner, name, original in patched:
        setattr(owner, name, _counted(original, countdown))
    try:
        yield countdown
    finally:
        for owner, name, original in patched:
            setattr(owner, name, original)


def _counted(original: Callable[..., Any], countdown: Countdown) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        countdown.step()
        return original(*arguments, **named)

    return counted
