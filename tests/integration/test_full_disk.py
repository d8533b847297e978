"""A disk that becomes full under each verb that changes something, and the way on from there.

A real file system without room. The error says so; with room, the same command (or what the error
names) leaves what the verb leaves undisturbed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from floodmark.errors import FloodmarkError
from integration.faulty_verbs import CHANGING, new_place
from integration.striking import Prepared, go_on, outcome
from mounted import can_mount, filled_up, mounted

pytestmark = pytest.mark.services

KILOBYTES = 2048
ROOMS = range(0, KILOBYTES, 8)
"""Kilobytes that are left; a verb ends well with some of them, which ends the test."""


@dataclass(frozen=True)
class Disk:
    """Checkpoints as folders of a disk."""

    root: Path
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def place(self, name: str) -> str:
        return str(self.root / f"{name}-{next(self._numbers)}")

    def objects(self, place: str) -> Path:
        return Path(place)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if not can_mount(tmp_path / "try"):
        pytest.skip("the tests may not mount a disk here")
    with mounted(tmp_path / "disk", kilobytes=KILOBYTES) as root:
        yield Disk(root)


@pytest.mark.parametrize("name", CHANGING)
def test_a_disk_that_becomes_full_under_a_verb(name: str, disk: Disk) -> None:
    verb = CHANGING[name]
    prepared = Prepared(verb, new_place(disk, {}))
    whole = prepared.again()
    verb.do(whole)
    right = verb.left(whole)
    refused = 0
    for room in ROOMS:
        place = prepared.again()
        before = place.tree(place.url)
        with filled_up(disk.root, room):
            first = outcome(verb.do, place)
        if not isinstance(first, FloodmarkError):
            break
        refused += 1
        told = f"{room} KB left: {first.what} {first.why} {first.do}"
        assert "full" in told or "No space left" in told, told
        go_on(verb, place)
        assert verb.left(place) == right, told
        if not verb.in_place:
            assert place.tree(place.url) == before, told
    else:
        pytest.fail("it never ended well")
    assert refused or name == "forget", "which only removes, and needs no room"
    print(f"\n{name}: refused {refused} times")
