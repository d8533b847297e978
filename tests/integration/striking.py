"""Strikes requests with faults, one after the other, and looks at what the verbs make of it.

Afterwards a verb is repeated without faults, and what it leaves is what it would have left
undisturbed; the old checkpoint is what it was.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from faults import Choice, Fault
from floodmark import api
from floodmark.errors import FloodmarkError, NoAnswer, NotThere, Unfinished
from integration.faulty_verbs import CHANGING, READING, Place, Verb, new_place

Strike = Callable[[Fault, int], Choice]
Faults = tuple[tuple[Fault, Strike], ...]
_TRIES = 3
LOSES = (Fault.DROPPED, Fault.DROPPED_AFTER, Fault.CUT, Fault.ERROR_500, Fault.ERROR_503)
# What differs from run to run: the place's number, times, and names that are drawn.
_DRAWN = re.compile(r"(?<=faults-)\d+|[0-9a-f]{8,}(T\d{6})?")


class Faulty(Protocol):
    """What stands before a store, and counts its requests."""

    seen: int
    faults: list[Fault]

    def faulty(self, choose: Choice) -> AbstractContextManager[Any]: ...


class Prepared:
    """A place with what a verb needs. It is made once, and put back for each try."""

    def __init__(self, verb: Verb, place: Place) -> None:
        self.place = new_place(place.store, place.options)
        verb.before(self.place)
        begun = self._folder("")
        self._saved = [
            (folder, begun.with_name(f"{folder.name}-saved"))
            for folder in (begun, self._folder("-new"), self._folder("-kept"))
            if folder.exists()
        ]
        for folder, saved in self._saved:
            shutil.copytree(folder, saved)

    def again(self) -> Place:
        for kind in ("", "-new", "-kept", "-restored"):
            shutil.rmtree(self._folder(kind), ignore_errors=True)
        for folder, saved in self._saved:
            shutil.copytree(saved, folder)
        return self.place

    def _folder(self, kind: str) -> Path:
        return self.place.store.objects(f"{self.place.url}{kind}")


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


class Apart:
    """Strikes many requests of one run, each once, with others between them.

    Each is known by what it asks for and how often that was asked before, so that the next run
    strikes those which are left. A client's second try is let through, and not counted.
    """

    def __init__(self, fault: Fault | None, between: int = 6) -> None:
        self.seen: set[tuple[str, str, int]] = set()
        self.struck: set[tuple[str, str, int]] = set()
        self._fault, self._between = fault, between

    def one_run(self) -> Choice:
        met: Counter[tuple[str, str]] = Counter()
        tried_again: set[tuple[str, str]] = set()
        passed = self._between

        def choose(_number: int, method: str, path: str) -> Fault | None:
            nonlocal passed
            name = (method, _DRAWN.sub("", path))
            if name in tried_again:
                tried_again.remove(name)
                return None
            met[name] += 1
            passed += 1
            self.seen.add((*name, met[name]))
            if self._fault is None or passed <= self._between or (*name, met[name]) in self.struck:
                return None
            self.struck.add((*name, met[name]))
            tried_again.add(name)
            passed = 0
            return self._fault

        return choose


def every_request_once(name: str, place: Place, proxy: Faulty, fault: Fault) -> int:
    """A change whose requests all meet a fault that passes, in as many runs as that takes."""
    verb, apart = CHANGING[name], Apart(fault)
    prepared = Prepared(verb, place)
    watched = Apart(None)
    _, right = undisturbed(verb, prepared.again(), proxy, watched.one_run())
    sent = watched.seen
    for _ in range(len(sent)):
        one = prepared.again()
        before = one.tree(one.url)
        with proxy.faulty(apart.one_run()):
            first = outcome(verb.do, one)
            struck = len(proxy.faults)
        same_in_the_end(verb, one, before, first, right, f"{fault} at {struck} requests; {first}")
        if not struck:
            break
    missed = sent - apart.struck
    # How often it looks for a query depends on the clock.
    assert len(missed) <= 0.05 * len(sent), f"{fault}: never met by {sorted(missed)}"
    return len(apart.struck)


def undisturbed(
    verb: Verb, place: Place, proxy: Faulty, watch: Choice = lambda *_: None
) -> tuple[int, Any]:
    """How many requests a change sends, and what it leaves."""
    with proxy.faulty(watch):
        verb.do(place)
        requests = proxy.seen
    return requests, verb.left(place)


def same_in_the_end(
    verb: Verb, place: Place, before: dict[str, bytes], first: Any, right: Any, told: str
) -> None:
    """After a repetition where the verb refused, the places are as a change leaves them."""
    if isinstance(first, FloodmarkError):
        go_on(verb, place)
    assert verb.left(place) == right, told
    if not verb.in_place:
        assert place.tree(place.url) == before, told


def changes_right(name: str, place: Place, proxy: Faulty, most: int, faults: Faults) -> int:
    """A change under a fault, then repeated without one: what it leaves is always the same."""
    verb, tried = CHANGING[name], 0
    prepared = Prepared(verb, place)
    requests, right = undisturbed(verb, prepared.again(), proxy)
    for fault, strike in faults:
        for at in positions(requests, most, f"{name} {fault} {strike.__name__}"):
            # How often a verb looks for a query depends on the clock, so a run can have fewer
            # requests: then its last one is struck.
            for _ in range(_TRIES):
                one = prepared.again()
                before = one.tree(one.url)
                with proxy.faulty(strike(fault, at)):
                    first = outcome(verb.do, one)
                if proxy.seen >= at:
                    break
                at = proxy.seen
            assert fault in proxy.faults, f"{fault} at {at} of {requests} missed {_TRIES} runs"
            told = f"{fault} {strike.__name__} at {at} of {requests}; {first}"
            same_in_the_end(verb, one, before, first, right, told)
            tried += 1
    return tried
