"""A sign of life on a terminal, for a command that takes longer than a second.

It is written to standard error, and is gone before anything else is printed. Commands that draw
themselves (a progress bar, a live page) take its place.
"""

from __future__ import annotations

import sys
import time
from threading import Event, Thread

from floodmark.cli import words

_AFTER = 1.0
_EVERY = 0.25
_TURNS = "|/-\\"
_CLEAR = "\r\x1b[K"


class Waiting:
    """While the command runs: its name, and for how long it has run."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._ended: Event | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Waiting:
        self._ended = Event()
        self._thread = Thread(target=self._turn, args=(self._ended,), daemon=True)
        self._thread.start()
        words.sign_of_life = self.end
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        if self._ended is not None and self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._ended = self._thread = None
        words.sign_of_life = None

    def _turn(self, ended: Event) -> None:
        began = time.monotonic()
        if ended.wait(_AFTER):
            return
        number = 0
        while True:
            seconds = int(time.monotonic() - began)
            # The cursor goes back to the line's beginning: what others print stands there.
            line = f"{_CLEAR}{_TURNS[number % len(_TURNS)]} {self._verb}, {seconds} s\r"
            number += 1
            _write(line)
            if ended.wait(_EVERY):
                _write(_CLEAR)
                return


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # the terminal has gone; the command says so itself, if it has to
