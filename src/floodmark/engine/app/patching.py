"""Replaces functions and attributes for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

_ABSENT = object()
WRAPPERS: set[CodeType] = set()
"""What stands in the place of other functions, and is no caller of its own."""


class Patches(contextlib.ExitStack):
    """Puts everything back when it closes, in the opposite order."""

    def set(self, owner: Any, name: str, value: Any) -> None:
        if isinstance(value, FunctionType):
            WRAPPERS.add(value.__code__)
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self.callback(_restore, owner, name, before)

    def wrap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        """`wrapper` gets the original. A name that this release does not have is left out."""
        before = getattr(owner, name, None)
        if before is not None:
            self.set(owner, name, wrapper(before))


def _restore(owner: Any, name: str, before: Any) -> None:
    if before is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, before)
