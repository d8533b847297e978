"""A store that fails now and then: every verb ends right, or says so and can be repeated.

Real requests go through a proxy to a real S3 server. A fault strikes one request, or all from one
request on. Afterwards the verb is repeated without faults, and what it leaves is what it would have
left undisturbed; the old checkpoint is what it was.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.engine.start import lease
from floodmark.errors import CannotRead, FloodmarkError, Unfinished
from floodmark.storage.files import open_files
from floodmark.storage.lease_files import read_holder
from services.fault_proxy import Choice, Fault, FaultProxy
from services.s3 import S3Server

pytestmark = pytest.mark.services

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
Faults = tuple[tuple[Fault, bool], ...]
"""Each with whether it lasts."""
LOSES = (Fault.DROPPED, Fault.DROPPED_AFTER, Fault.CUT, Fault.ERROR_500, Fault.ERROR_503)


@dataclass(frozen=True)
class Place:
    """A copy of the golden checkpoint on the server, and room beside it."""

    s3: S3Server
    url: str
    options: dict[str, Any]

    @property
    def go(self) -> Carrying:
        clock = Clock(pause=lambda seconds: None)
        return Carrying(execute=True, clock=clock, storage=self.options)

    @property
    def new(self) -> str:
        return f"{self.url}-new"

    @property
    def kept(self) -> str:
        return f"{self.url}-kept"

    def tree(self, url: str) -> dict[str, bytes]:
        """What lies there, by the server's own folder; the tool's notes left out."""
        folder = self.s3.objects(url)
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "_floodmark" not in path.parts
        }


def _inspected(place: Place) -> Any:
    found = api.inspect(place.url, place.options)
    if found.unreadable:  # said beside what could be read
        raise CannotRead(found.unreadable[0].reason, do="Try again.")
    return found


def _batches(place: Place) -> Any:
    return [one.batch for one in api.batches(place.url, storage=place.options)]


def _doctor(place: Place) -> Any:
    return [one.rule for one in api.doctor(place.url, storage=place.options, read_data=True)]


def _state(place: Place) -> Any:
    return sorted(map(str, api.state(place.url, storage=place.options).to_pandas().values.tolist()))


READING: dict[str, Callable[[Place], Any]] = {
    "inspect": _inspected,
    "batches": _batches,
    "doctor": _doctor,
    "state": _state,
}
CHANGING: dict[str, Callable[[Place], Any]] = {
    "upgrade": lambda at: api.upgrade(at.url, at.new, storage=at.options, carrying=at.go),
    "copy": lambda at: api.copy(at.url, at.new, storage=at.options, carrying=at.go),
    "repartition": lambda at: api.repartition(
        at.url, at.new, partitions=3, storage=at.options, carrying=at.go
    ),
    "rewind": lambda at: api.rewind(
        at.url, to_batch=1, accept="out-of-reach", storage=at.options, carrying=at.go
    ),
    "backup": lambda at: api.backup(at.url, at.new, storage=at.options, carrying=at.go),
    "restore": lambda at: api.restore(at.kept, at.new, storage=at.options, carrying=at.go),
    "repair": lambda at: api.repair(at.url, accept="repeats", storage=at.options, carrying=at.go),
}
IN_PLACE = ("rewind", "repair")


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3.port) as started:
        yield started


@pytest.fixture
def place(s3: S3Server, proxy: FaultProxy) -> Place:
    url = s3.place("faults")
    shutil.copytree(GOLDEN, s3.objects(url))
    return Place(s3, url, {**s3.storage_options, "endpoint_url": proxy.endpoint})


def _again(verb: str, place: Place) -> Place:
    """A place of its own for one more try, with what the verb needs."""
    url = place.s3.place("faults")
    shutil.copytree(GOLDEN, place.s3.objects(url))
    made = Place(place.s3, url, place.options)
    if verb == "repair":
        (made.s3.objects(url) / "state/0/0/3.delta").unlink()
    if verb == "restore":
        api.backup(url, made.kept, storage=made.options, carrying=made.go)
    return made


def _go_on(verb: str, place: Place) -> None:
    """As the error says: the same again, or what was begun is finished."""
    try:
        CHANGING[verb](place)
    except Unfinished:
        api.resume(place.url, storage=place.options, carrying=place.go)


def test_the_proxy_changes_nothing(place: Place, proxy: FaultProxy) -> None:
    with proxy.faulty(lambda *_: None):
        assert _state(place)
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


def _changes_right(verb: str, place: Place, proxy: FaultProxy, most: int, faults: Faults) -> int:
    """A change under a fault, then repeated without one: what it leaves is always the same."""
    change, tried = CHANGING[verb], 0
    whole = _again(verb, place)
    with proxy.faulty(lambda *_: None):
        change(whole)
        requests = proxy.seen
    right = _left(verb, whole)
    for fault, lasting in faults:
        for at in _positions(requests, most, f"{verb} {fault} {lasting}"):
            one = _again(verb, place)
            before = one.tree(one.url)
            with proxy.faulty((_from if lasting else _once)(fault, at)):
                first = _outcome(change, one)
                assert fault in proxy.faults
            told = f"{fault} at {at} of {requests}, lasting: {lasting}; {first}"
            if isinstance(first, FloodmarkError):
                _go_on(verb, one)
            assert _left(verb, one) == right, told
            if verb not in IN_PLACE:
                assert one.tree(one.url) == before, told
            tried += 1
    return tried


def _left(verb: str, place: Place) -> dict[str, bytes]:
    if verb == "backup":  # its names and times are its own: what can be taken out of it counts
        goal = f"{place.url}-restored"
        api.restore(place.new, goal, storage=place.options, carrying=place.go)
        return place.tree(goal)
    if verb in IN_PLACE:
        found = place.tree(place.url)
        assert len(json.loads(found.pop("metadata"))["id"]) == 36  # a new one each time
        return found
    return place.tree(place.new)


@pytest.mark.parametrize("verb", READING)
def test_a_verb_that_reads(verb: str, place: Place, proxy: FaultProxy) -> None:
    assert _reads_right(verb, place, proxy, 1) == len(LOSES)


@pytest.mark.parametrize("verb", ["upgrade", "rewind"])
def test_a_verb_that_changes(verb: str, place: Place, proxy: FaultProxy) -> None:
    faults = ((Fault.DROPPED_AFTER, False), (Fault.ERROR_500, True))
    assert _changes_right(verb, place, proxy, 1, faults) == 2


def test_a_store_that_is_down_is_told_of_in_bounded_time(place: Place, proxy: FaultProxy) -> None:
    with proxy.faulty(lambda *_: Fault.DROPPED):
        error = _outcome(_inspected, place)
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
