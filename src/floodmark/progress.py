"""Reports the progress of long work to a listener, such as the command line on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
Listener = Callable[[str, int | None, int | None], None]
"""Gets the name of the work, the number of finished items, and their total if it is known."""

_listener: Listener | None = None


def listen(listener: Listener | None) -> None:
    global _listener
    _listener = listener


def tell(work: str, done: int | None = None, total: int | None = None) -> None:
    """Report progress; `work` is the counted noun or, without a number, what happens now."""
    if _listener is not None:
        _listener(work, done, total)


def counted(items: Collection[_Item], noun: str) -> Iterable[_Item]:
    """Return the items; report each one when it is finished."""
    return items if _listener is None else _told(items, noun)


def _told(items: Collection[_Item], noun: str) -> Iterator[_Item]:
    for done, item in enumerate(items):
        tell(noun, done, len(items))
        yield item
    tell(noun, len(items), len(items))
