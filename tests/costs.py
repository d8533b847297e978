"""How the cost of work grows with its size: no clock of a crowded machine decides."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_ROUNDS = 4


def growth(work: Callable[[int], object], size: int, times: int) -> float:
    """How many times the processor time of `size` that of `size * times` is.

    Rounds of both in turns, and the best of each: a noisy moment hits both. The collector of
    garbage rests, as its own work grows with all that a test process has ever made.
    """
    small, large = [], []
    work(size)
    for _ in range(_ROUNDS):
        small.append(_seconds(work, size))
        large.append(_seconds(work, size * times))
    return min(large) / max(min(small), 1e-6)


def _seconds(work: Callable[[int], object], size: int) -> float:
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work(size)
        return time.process_time() - began
    finally:
        gc.enable()
