"""Runs short jobs in threads; a thread that hangs is replaced, and delays nobody."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

_MOST = 32


class Workers:
    def __init__(
        self,
        name: str,
        count: int,
        patience: float,
        failed: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """`failed` gets the exception of a job: the thread continues with the next job."""
        self._name = name
        self._failed = failed
        self._count = count
        self._patience = patience
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy: dict[int, float] = {}
        self._started = 0
        for _ in range(count):
            self._start()

    def add(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    @property
    def waiting(self) -> int:
        return self._jobs.qsize()

    def replace_stuck(self) -> None:
        """Replace a thread whose read does not return, as a thread cannot be ended."""
        now = time.monotonic()
        with self._lock:
            stuck = sum(now - since > self._patience for since in self._busy.values())
            missing = min(self._count + stuck, _MOST) - self._started
        for _ in range(missing):
            self._start()

    def close(self) -> None:
        for _ in range(self._started):
            self._jobs.put(None)

    def _start(self) -> None:
        self._started += 1
        name = f"floodmark-{self._name}-{self._started}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        me = threading.get_ident()
        while (job := self._jobs.get()) is not None:
            with self._lock:
                self._busy[me] = time.monotonic()
            try:
                job()
            except Exception as error:
                self._failed(error)
            finally:
                with self._lock:
                    self._busy.pop(me, None)
