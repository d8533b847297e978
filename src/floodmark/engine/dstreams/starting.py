"""Starts a context in a thread of its own.

A recovered context comes back from its start only when it has planned every batch that it missed,
which can take many minutes, and runs them meanwhile. The run goes on reading batches and signals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Starting:
    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="floodmark-start", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._start()
        except Exception as error:
            self._error = error

    def is_over(self, seconds: float) -> bool:
        """Whether the context has started, after a wait; raises what its start has failed at."""
        self._thread.join(seconds)
        # Before the error: a start that fails between the two looks would be taken for a good one,
        # and a context that never started is waited for without end.
        is_over = not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return is_over
