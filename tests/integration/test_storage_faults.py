"""A store that fails now and then: every verb ends right, or says so and can be repeated.

Real requests go through a proxy to a real S3 server. A fault strikes one request, or all from one
request on. Afterwards the verb is repeated without faults, and what it leaves is what it would have
left undisturbed; the old checkpoint is what it was. `make soak` strikes every request.
FLOODMARK_S3_STRIKES is how many for each fault that does not pass, drawn by a seed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from itertools import count

import pytest

from faults import Fault
from floodmark.engine.start import lease
from floodmark.errors import FloodmarkError
from floodmark.storage.files import open_files
from floodmark.storage.lease_files import read_holder
from integration.faulty_verbs import CHANGING, READING, Place, new_place
from integration.striking import (
    LOSES,
    Faults,
    always,
    changes_right,
    every_request_once,
    from_then_on,
    once,
    outcome,
    reads_right,
)
from services.fault_proxy import FaultProxy
from services.s3 import S3Server

pytestmark = pytest.mark.services

STRIKES = int(os.environ.get("FLOODMARK_S3_STRIKES", "10000"))
READ: Faults = (*((fault, once) for fault in LOSES), (Fault.ERROR_500, always))


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


def test_the_proxy_changes_nothing(place: Place, proxy: FaultProxy) -> None:
    with proxy.faulty(lambda *_: None):
        assert place.rows(place.url)
        assert proxy.seen > 5
    assert proxy.faults == []


@pytest.mark.parametrize("verb", READING)
def test_a_verb_that_reads(verb: str, place: Place, proxy: FaultProxy) -> None:
    assert reads_right(verb, place, proxy, 1, READ) == len(READ)


@pytest.mark.parametrize("verb", ["upgrade", "rewind"])
def test_a_verb_that_changes(verb: str, place: Place, proxy: FaultProxy) -> None:
    faults = ((Fault.DROPPED_AFTER, once), (Fault.ERROR_500, from_then_on))
    assert changes_right(verb, place, proxy, 1, faults) == 2


def test_a_store_that_is_down_is_told_of_in_bounded_time(place: Place, proxy: FaultProxy) -> None:
    with proxy.faulty(lambda *_: Fault.DROPPED):
        error = outcome(READING["inspect"], place)
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
    tried = reads_right(verb, place, proxy, STRIKES, READ)
    print(f"\n{verb}: {tried} faults")
    assert tried > len(LOSES)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("verb", CHANGING)
def test_every_request_of_a_change(verb: str, place: Place, proxy: FaultProxy) -> None:
    met = {fault.name: every_request_once(verb, place, proxy, fault) for fault in LOSES}
    for fault in (Fault.ERROR_500, Fault.DROPPED_AFTER):
        met[f"{fault.name} always"] = changes_right(verb, place, proxy, STRIKES, ((fault, always),))
    down = ((Fault.ERROR_500, from_then_on),)
    met["down"] = changes_right(verb, place, proxy, min(40, STRIKES), down)
    print(f"\n{verb}: {sum(met.values())} faults, {met}", flush=True)
    assert all(met.values())
