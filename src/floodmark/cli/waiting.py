"""A sign of life on a terminal, for a command that takes longer than a second.

It is written to standard error, and is gone before anything else is printed. Commands that draw
themselves (a progress bar, a live page) take its place.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Event, Thread

_AFTER = 1.0
_EVERY = 0.25
_TURNS = "|/-\\"
_CLEAR = "\r\x1b[K"


class Waiting:
    """While the command runs: its name, and for how long it has run."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._ended: Event | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Waiting:
        global _current
        if is_terminal():
            from threading import Event, Thread

            self._ended = Event()
            self._thread = Thread(target=self._turn, args=(self._ended,), daemon=True)
            self._thread.start()
            _current = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        global _current
        if self._ended is not None and self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._ended = self._thread = None
        _current = None

    def _turn(self, ended: Event) -> None:
        began = time.monotonic()
        if ended.wait(_AFTER):
            return
        number = 0
        while True:
            seconds = int(time.monotonic() - began)
            # The cursor goes back to the line's beginning: what others print stands there.
            line = f"{_CLEAR}{_TURNS[number % len(_TURNS)]} {self._words}, {seconds} s\r"
            number += 1
            _write(line)
            if ended.wait(_EVERY):
                _write(_CLEAR)
                return


_current: Waiting | None = None


def end() -> None:
    """Before something is printed, or drawn by somebody else."""
    if _current is not None:
        _current.end()


def is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # the terminal has gone; the command says so itself, if it has to
