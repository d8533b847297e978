"""Faults of storage that a test chooses, request by request, and what became of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TypeVar


class Fault(Enum):
    ERROR_500 = "answers 500 InternalError"
    ERROR_503 = "answers 503 SlowDown"
    DROPPED = "is dropped before it reaches the server"
    DROPPED_AFTER = "reaches the server, and its answer is lost"
    CUT = "gets half of its answer's body"
    SLOW = "waits"


Choice = Callable[[int, str, str], Fault | None]
"""What happens to a request: by its number from 1, its method and its path."""
_Own = TypeVar("_Own", bound="ChosenFaults")


class ChosenFaults:
    """Counts requests and gives each its fault, from as many threads as ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._choose: Choice = lambda *_: None
        self.seen = 0
        self.faults: list[Fault] = []

    @contextmanager
    def faulty(self: _Own, choose: Choice) -> Iterator[_Own]:
        """Counts requests from 1 again; afterwards all are carried out."""
        with self._lock:
            self.seen, self.faults, self._choose = 0, [], choose
        try:
            yield self
        finally:
            with self._lock:
                self._choose = lambda *_: None

    def fault_of(self, method: str, path: str) -> Fault | None:
        with self._lock:
            self.seen += 1
            fault = self._choose(self.seen, method, path)
            if fault is not None:
                self.faults.append(fault)
            return fault
