"""Ends a script that does not end by itself: after a limit, or when it only waits."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch

_TICK_SECONDS = 0.5
_AFTER_START_SECONDS = 5.0
"""The time after which a script that has started the wanted query only waits for it."""
_SWALLOWED = 20
_NAPS = 50
_NAP_SECONDS = 0.02


class ScriptEnded(SystemExit):
    """Ends a script as sys.exit() does; it is no Exception, which scripts catch."""


class EndedAtOnce(SystemExit):
    """Replaces os._exit(), which would end the verb too."""


def end_at_once(status: int) -> None:
    raise EndedAtOnce(status)


class Limit:
    def __init__(self, seconds: float, source: str) -> None:
        self._seconds = seconds
        self._source = source
        self._began = time.monotonic()
        self._enough_since: float | None = None
        self._raised = 0
        self._naps = 0
        self.reached = False
        """True where the script was ended for another reason than waiting for its query."""

    @property
    def has_enough(self) -> bool:
        return self._enough_since is not None

    def found_enough(self) -> None:
        """Remember that a wanted query was caught."""
        self._enough_since = time.monotonic()

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the limit with signals, which only the main thread gets; else there is no limit."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, _TICK_SECONDS, _TICK_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _tick(self, _number: int, _frame: Any) -> None:
        now = time.monotonic()
        waits = self._enough_since is not None
        if waits and now - (self._enough_since or now) < _AFTER_START_SECONDS:
            return
        if not waits and now - self._began < self._seconds:
            return
        self.reached = self.reached or not waits
        self._raised += 1
        if self._raised > _SWALLOWED:
            # The script catches even this every time: only the end of the process ends it.
            sys.__stderr__.write(  # type: ignore[union-attr]
                f"WrongUse: {self._source} does not end, and catches every exception\n"
                "  Nothing was started and nothing was written.\n"
                "  Let it end, or catch `Exception` instead of everything.\n"
            )
            os._exit(2)
        raise ScriptEnded

    def shorten_sleep(self, patches: Patches, watch: Watch) -> None:
        """Skip the script's sleeps while it waits for a query that was not started."""

        def wrapper(original: Callable[[float], None]) -> Callable[[float], None]:
            def sleep(seconds: float) -> None:
                main = threading.current_thread() is threading.main_thread()
                if self._enough_since is None or not watch.is_users_call():
                    original(seconds)
                    return
                self._naps += main
                if self._naps > _NAPS and main:
                    raise ScriptEnded
                original(min(seconds, _NAP_SECONDS))

            return sleep

        patches.wrap(time, "sleep", wrapper)
