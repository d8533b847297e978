"""SIGTERM and Ctrl-C: the first asks a run to finish its batch, the second to stop now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StopSignals:
    """How often the user has asked to stop."""

    def __init__(self) -> None:
        self._asked = 0
        self._changed = threading.Event()

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
            for number, handler in before.items():
                signal.signal(number, handler)

    def listen(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self.hear)

    def hear(self, _number: int, _frame: Any) -> None:
        self._asked += 1
        self._changed.set()
        if self._asked > 2:  # neither finishing nor stopping has helped
            raise KeyboardInterrupt
