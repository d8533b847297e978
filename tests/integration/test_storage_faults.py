"""A store that fails now and then: every verb ends right, or says so and can be repeated.

Real requests go through a proxy to a real S3 server. A fault strikes one request, or all from one
request on. Afterwards the verb is repeated without faults, and what it leaves is what it would have
left undisturbed; the old checkpoint is what it was.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from floodmark import api
from floodmark.engine.start import lease
from floodmark.errors import FloodmarkError, NoAnswer, NotThere, Unfinished
from floodmark.storage.files import open_files
from floodmark.storage.lease_files import read_holder
from integration.faulty_verbs import CHANGING, READING, Place, Verb, new_place
from services.fault_proxy import Choice, Fault, FaultProxy
from services.s3 import S3Server

pytestmark = pytest.mark.services

Faults = tuple[tuple[Fault, bool], ...]
"""Each with whether it lasts."""
LOSES = (Fault.DROPPED, Fault.DROPPED_AFTER, Fault.CUT, Fault.ERROR_500, Fault.ERROR_503)


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3.port) as started:
        yield started


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What S3's client waits between its tries would be most of the time, and is not tried here."""
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds, *rest: sleep(0, *rest))


@pytest.fixture
def place(s3: S3Server, proxy: FaultProxy) -> Place:
    return new_place(s3, {**s3.storage_options, "endpoint_url": proxy.endpoint})


def _again(verb: Verb, place: Place) -> Place:
    """A place of its own for one more try, with what the verb needs."""
    made = new_place(place.s3, place.options)
    verb.before(made)
    return made


def _go_on(verb: Verb, place: Place) -> None:
    """As the error says: the same again, or what was begun is finished."""
    try:
        verb.do(place)
    except Unfinished:
        api.resume(place.url, storage=place.options, carrying=place.go)
    except (NoAnswer, NotThere):
        if not verb.removes:
            raise


def test_the_proxy_changes_nothing(place: Place, proxy: FaultProxy) -> None:
    with proxy.faulty(lambda *_: None):
        assert place.rows(place.url)
        assert proxy.seen > 5
    assert proxy.faults == []


def _positions(requests: int, most: int, seed: str) -> list[int]:
    every = list(range(1, requests + 1))
    return every if most >= requests else sorted(random.Random(seed).sample(every, most))


def _once(fault: Fault, at: int) -> Choice:
    return lambda number, *_: fault if number == at else None


def _from(fault: Fault, at: int) -> Choice:
    return lambda number, *_: fault if number >= at else None


def _outcome(verb: Callable[[Place], Any], place: Place) -> Any:
    """What it gave, or how it said that it could not."""
    try:
        return verb(place)
    except FloodmarkError as error:
        assert error.what  # noqa: PT017 - both ways of ending are right
        assert error.do, f"{error.what}: nothing says how to go on"  # noqa: PT017
        return error


def _reads_right(verb: str, place: Place, proxy: FaultProxy, most: int) -> int:
    """Every fault at some requests: never another answer than the right one."""
    read, tried = READING[verb], 0
    with proxy.faulty(lambda *_: None):
        right = read(place)
        requests = proxy.seen
    for fault in LOSES:
        for at in _positions(requests, most, f"{verb} {fault}"):
            with proxy.faulty(_once(fault, at)):
                found = _outcome(read, place)
                assert isinstance(found, FloodmarkError) or found == right, f"{fault} at {at}"
                assert proxy.faults == [fault]
                tried += 1
    return tried


def _changes_right(name: str, place: Place, proxy: FaultProxy, most: int, faults: Faults) -> int:
    """A change under a fault, then repeated without one: what it leaves is always the same."""
    verb, tried = CHANGING[name], 0
    whole = _again(verb, place)
    with proxy.faulty(lambda *_: None):
        verb.do(whole)
        requests = proxy.seen
    right = verb.left(whole)
    for fault, lasting in faults:
        for at in _positions(requests, most, f"{name} {fault} {lasting}"):
            one = _again(verb, place)
            before = one.tree(one.url)
            with proxy.faulty((_from if lasting else _once)(fault, at)):
                first = _outcome(verb.do, one)
                assert fault in proxy.faults
            told = f"{fault} at {at} of {requests}, lasting: {lasting}; {first}"
            if isinstance(first, FloodmarkError):
                _go_on(verb, one)
            assert verb.left(one) == right, told
            if not verb.in_place:
                assert one.tree(one.url) == before, told
            tried += 1
    return tried


@pytest.mark.parametrize("verb", READING)
def test_a_verb_that_reads(verb: str, place: Place, proxy: FaultProxy) -> None:
    assert _reads_right(verb, place, proxy, 1) == len(LOSES)


@pytest.mark.parametrize("verb", ["upgrade", "rewind"])
def test_a_verb_that_changes(verb: str, place: Place, proxy: FaultProxy) -> None:
    faults = ((Fault.DROPPED_AFTER, False), (Fault.ERROR_500, True))
    assert _changes_right(verb, place, proxy, 1, faults) == 2


def test_a_store_that_is_down_is_told_of_in_bounded_time(place: Place, proxy: FaultProxy) -> None:
    with proxy.faulty(lambda *_: Fault.DROPPED):
        error = _outcome(READING["inspect"], place)
        assert isinstance(error, FloodmarkError)
        assert "answered with an error" in error.what
        assert proxy.seen < 60


@pytest.mark.parametrize("put", [1, 2])
def test_a_lease_whose_answer_is_lost_is_held(put: int, place: Place, proxy: FaultProxy) -> None:
    """The store has it, and says 'taken' when the client asks again."""
    puts = count(1)

    def lost(_number: int, method: str, _path: str) -> Fault | None:
        return Fault.DROPPED_AFTER if method == "PUT" and next(puts) == put else None

    files = open_files(place.url, place.options)
    with proxy.faulty(lost):
        held = lease.take(files, "sales", None, run="run-1")
        assert proxy.faults == [Fault.DROPPED_AFTER]
    try:
        found = read_holder(files)
        assert found is not None
        assert found.run == "run-1"
    finally:
        held.release()
    assert read_holder(files) is None


@pytest.mark.soak
@pytest.mark.parametrize("verb", READING)
def test_every_request_of_a_verb_that_reads(verb: str, place: Place, proxy: FaultProxy) -> None:
    tried = _reads_right(verb, place, proxy, 10_000)
    print(f"\n{verb}: {tried} faults")
    assert tried > len(LOSES)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("verb", CHANGING)
def test_every_request_of_a_change(verb: str, place: Place, proxy: FaultProxy) -> None:
    once = tuple((fault, False) for fault in LOSES)
    tried = _changes_right(verb, place, proxy, 10_000, once)
    tried += _changes_right(verb, place, proxy, 40, ((Fault.ERROR_500, True),))
    print(f"\n{verb}: {tried} faults")
    assert tried > len(LOSES)
