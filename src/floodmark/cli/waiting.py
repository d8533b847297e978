"""Shows a sign of life with a command's progress, if it takes longer than a second.

It is written to standard error, and removed before anything else is printed. Commands that draw
themselves (a progress bar, a live page) replace it.
"""

from __future__ import annotations

import os
import sys
import time
from threading import Event, Thread

from floodmark import progress
from floodmark.cli import text

_AFTER = 1.0
_EVERY = 0.25
_TURNS = "|/-\\"
_CLEAR = "\r\x1b[K"
_BAR = 20


class Waiting:
    """Shows the running command: its name, its progress, and for how long it has run."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._far = ""
        self._ended: Event | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Waiting:
        self._ended = Event()
        self._thread = Thread(target=self._turn, args=(self._ended,), daemon=True)
        self._thread.start()
        text.sign_of_life = self.end
        progress.listen(self._come)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _come(self, work: str, done: int | None, total: int | None) -> None:
        self._far = f": {come_so_far(work, done, total)}" if work else ""

    def end(self) -> None:
        progress.listen(None)
        if self._ended is not None and self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._ended = self._thread = None
        text.sign_of_life = None

    def _turn(self, ended: Event) -> None:
        began = time.monotonic()
        if ended.wait(_AFTER):
            return
        number = 0
        while True:
            seconds = int(time.monotonic() - began)
            # The cursor goes back to the beginning of the line, where other output belongs.
            line = f"{_TURNS[number % len(_TURNS)]} {self._verb}{self._far}, {seconds} s"
            number += 1
            _write(f"{_CLEAR}{line[: _columns() - 1]}\r")
            if ended.wait(_EVERY):
                _write(_CLEAR)
                return


def come_so_far(work: str, done: int | None, total: int | None) -> str:
    if done is None:
        return work
    if not total:
        return f"{done:,} {work}"
    full = _BAR * min(done, total) // total
    return f"[{'#' * full}{'-' * (_BAR - full)}] {done:,} of {total:,} {work}"


def _columns() -> int:
    """Return the usable columns: a longer line would wrap, and its first part would stay."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # the terminal has gone; the command itself reports that if it has to
