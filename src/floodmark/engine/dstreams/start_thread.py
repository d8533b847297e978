"""Starts a context in a thread of its own.

The start of a recovered context returns only after it has planned every missed batch, which can
take many minutes; it runs these batches meanwhile. The run continues to read batches and signals.
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
        """Wait, and return whether the context has started; raise the error of its start."""
        self._thread.join(seconds)
        # Read this before the error: a start that fails between the two would look like a good one,
        # and the run would wait for a context that never started.
        is_over = not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return is_over
