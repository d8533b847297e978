"""Every verb on a store whose requests fail for good: it ends right, or says how to go on.

The S3 client sends a request again before anybody sees that it failed; here each failure is seen.
tests/integration/test_storage_faults.py has the same verbs behind a real S3 server.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults import Fault
from faulty_store import FaultyStore
from integration.faulty_verbs import CHANGING, READING, Place, new_place
from integration.striking import Faults, changes_right, from_then_on, once, reads_right

FAULTS: Faults = (
    (Fault.DROPPED, once),
    (Fault.DROPPED_AFTER, once),
    (Fault.DROPPED, from_then_on),
)


@pytest.fixture(scope="module")
def store() -> Iterator[FaultyStore]:
    with FaultyStore() as made:
        yield made


@pytest.fixture
def place(store: FaultyStore) -> Place:
    return new_place(store, {})


@pytest.mark.parametrize("verb", READING)
def test_a_verb_that_reads(verb: str, place: Place, store: FaultyStore) -> None:
    assert reads_right(verb, place, store, 3, FAULTS) == 9


@pytest.mark.parametrize("verb", CHANGING)
def test_a_verb_that_changes(verb: str, place: Place, store: FaultyStore) -> None:
    assert changes_right(verb, place, store, 2, FAULTS) == 6


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("verb", [*READING, *CHANGING])
def test_every_request(verb: str, place: Place, store: FaultyStore) -> None:
    right = reads_right if verb in READING else changes_right
    tried = right(verb, place, store, 10_000, FAULTS)
    print(f"\n{verb}: {tried} faults")
    assert tried > len(FAULTS)
