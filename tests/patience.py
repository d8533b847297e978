"""How tests wait: they look again and again, with a limit that only a fault reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT = 300.0
"""Seconds. A crowded machine must not reach it; nobody waits for it where all is well."""

_Found = TypeVar("_Found")


def wait_until(
    found: Callable[[], _Found],
    but: Callable[[], object] = lambda: "",
    limit: float = LIMIT,
    pause: float = 0.05,
) -> _Found:
    """What it finds, once that is true. `but` is asked what there is instead, at the limit."""
    ends = time.monotonic() + limit
    while not (one := found()):
        assert time.monotonic() < ends, but()
        time.sleep(pause)
    return one
