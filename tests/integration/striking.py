"""Strikes requests with faults, one after the other, and looks at what the verbs make of it.

Afterwards a verb is repeated without faults, and what it leaves is what it would have left
undisturbed; the old checkpoint is what it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from faults import Choice, Fault
from floodmark import api
from floodmark.errors import FloodmarkError, NoAnswer, NotThere, Unfinished
from integration.faulty_verbs import CHANGING, READING, Place, Verb, new_place

Strike = Callable[[Fault, int], Choice]
Faults = tuple[tuple[Fault, Strike], ...]
LOSES = (Fault.DROPPED, Fault.DROPPED_AFTER, Fault.CUT, Fault.ERROR_500, Fault.ERROR_503)


class Faulty(Protocol):
    """What stands before a store, and counts its requests."""

    seen: int
    faults: list[Fault]

    def faulty(self, choose: Choice) -> AbstractContextManager[Any]: ...


def again(verb: Verb, place: Place) -> Place:
    """A place of its own for one more try, with what the verb needs."""
    made = new_place(place.store, place.options)
    verb.before(made)
    return made


def go_on(verb: Verb, place: Place) -> None:
    """As the error says: the same again, or what was begun is finished."""
    try:
        verb.do(place)
    except Unfinished:
        api.resume(place.url, storage=place.options, carrying=place.go)
    except (NoAnswer, NotThere):
        if not verb.removes:
            raise


def positions(requests: int, most: int, seed: str) -> list[int]:
    every = list(range(1, requests + 1))
    return every if most >= requests else sorted(random.Random(seed).sample(every, most))


def once(fault: Fault, at: int) -> Choice:
    """The client asks again, and gets its answer."""
    return lambda number, *_: fault if number == at else None


def always(fault: Fault, at: int) -> Choice:
    """One request fails however often it is sent; all others are answered."""
    struck: set[tuple[str, str]] = set()

    def choose(number: int, method: str, path: str) -> Fault | None:
        if number == at:
            struck.add((method, path))
        return fault if (method, path) in struck else None

    return choose


def from_then_on(fault: Fault, at: int) -> Choice:
    return lambda number, *_: fault if number >= at else None


def outcome(verb: Callable[[Place], Any], place: Place) -> Any:
    """What it gave, or how it said that it could not."""
    try:
        return verb(place)
    except FloodmarkError as error:
        assert error.what  # noqa: PT017 - both ways of ending are right
        assert error.do, f"{error.what}: nothing says how to go on"  # noqa: PT017
        return error


def reads_right(verb: str, place: Place, proxy: Faulty, most: int, faults: Faults) -> int:
    """Every fault at some requests: never another answer than the right one."""
    read, tried = READING[verb], 0
    with proxy.faulty(lambda *_: None):
        right = read(place)
        requests = proxy.seen
    for fault, strike in faults:
        for at in positions(requests, most, f"{verb} {fault} {strike.__name__}"):
            with proxy.faulty(strike(fault, at)):
                found = outcome(read, place)
                told = f"{fault} {strike.__name__} at {at}: {found}"
                assert isinstance(found, FloodmarkError) or found == right, told
                assert set(proxy.faults) == {fault}
                tried += 1
    return tried


def changes_right(name: str, place: Place, proxy: Faulty, most: int, faults: Faults) -> int:
    """A change under a fault, then repeated without one: what it leaves is always the same."""
    verb, tried = CHANGING[name], 0
    whole = again(verb, place)
    with proxy.faulty(lambda *_: None):
        verb.do(whole)
        requests = proxy.seen
    right = verb.left(whole)
    for fault, strike in faults:
        for at in positions(requests, most, f"{name} {fault} {strike.__name__}"):
            one = again(verb, place)
            before = one.tree(one.url)
            with proxy.faulty(strike(fault, at)):
                first = outcome(verb.do, one)
                if proxy.seen < at:  # how often it looks for a query depends on the clock
                    continue
                assert fault in proxy.faults
            told = f"{fault} {strike.__name__} at {at} of {requests}; {first}"
            if isinstance(first, FloodmarkError):
                go_on(verb, one)
            assert verb.left(one) == right, told
            if not verb.in_place:
                assert one.tree(one.url) == before, told
            tried += 1
    return tried
