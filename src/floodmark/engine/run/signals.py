"""Handles SIGTERM and Ctrl-C: the first lets a run finish its batch, the second stops it now.

A JVM that hangs reacts to neither; after the second signal it has half a minute.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

STUCK_AFTER_SECONDS = 30.0


class StopSignals:
    """Counts how often the user has asked to stop."""

    def __init__(self) -> None:
        self.when_stuck: Callable[[], None] = lambda: None
        """Called if the run has not ended half a minute after the second signal."""
        self._asked = 0
        self._changed = threading.Event()
        self._stuck = threading.Timer(STUCK_AFTER_SECONDS, lambda: self.when_stuck())
        self._stuck.daemon = True

    @property
    def asked(self) -> bool:
        return self._asked > 0

    def hurried(self) -> bool:
        return self._asked > 1

    def wait(self, seconds: float) -> None:
        self._changed.wait(seconds)
        self._changed.clear()

    @contextmanager
    def listening(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread can have signal handlers
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self.listen()
        try:
            yield
        finally:
            self._stuck.cancel()
            for number, handler in before.items():
                signal.signal(number, handler)

    def listen(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self.hear)

    def hear(self, _number: int, _frame: Any) -> None:
        self._asked += 1
        self._changed.set()
        if self._asked == 2:
            self._stuck.start()
        if self._asked > 2:  # neither finishing nor stopping has helped
            raise KeyboardInterrupt
