"""How far long work has come, for whoever shows it: the command line on a terminal, else nobody."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
Listener = Callable[[str, int | None, int | None], None]
"""Called with what is worked on, how many of it are done, and of how many, where that is known."""

_listener: Listener | None = None


def listen(listener: Listener | None) -> None:
    global _listener
    _listener = listener


def tell(work: str, done: int | None = None, total: int | None = None) -> None:
    """`work` is the noun that is counted, or, without a number, what goes on now."""
    if _listener is not None:
        _listener(work, done, total)


def counted(items: Collection[_Item], noun: str) -> Iterable[_Item]:
    """The items; each is told of when it has been worked on."""
    return items if _listener is None else _told(items, noun)


def _told(items: Collection[_Item], noun: str) -> Iterator[_Item]:
    for done, item in enumerate(items):
        tell(noun, done, len(items))
        yield item
    tell(noun, len(items), len(items))
