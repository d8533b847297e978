"""The types of results: names of the package, each said in the reference with all of its parts."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import floodmark
from project_scripts import SCRIPTS, script

PUBLIC = sorted(name for name in floodmark.__all__ if inspect.isclass(getattr(floodmark, name)))
# What decorators declare, an answer in two parts, and `open`'s Checkpoint that has state as well.
APART = {"DStreamPipeline", "Damage", "OpenCheckpoint", "Pipeline"}


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(SCRIPTS))
        yield script("reference", "reference_of_the_package")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_type_says_what_each_part_of_it_is(name: str, reference: ModuleType) -> None:
    kind = getattr(floodmark, name)
    words = kind.__dict__.get("__doc__") or ""
    assert words, f"{name} does not say what it is"
    assert not words.startswith(f"{name}("), f"{name} does not say what it is"
    if issubclass(kind, enum.Enum):
        assert set(reference.enum_words(kind)) == {one.name for one in kind}
    else:
        told = dict(reference.members(kind))
        assert told
        assert [part for part, said in told.items() if not said] == []


def test_what_a_verb_gives_is_a_name_of_the_package() -> None:
    given = {
        kind
        for name in floodmark.__all__
        if inspect.isfunction(verb := getattr(floodmark, name))
        for kind in re.findall(r"\b[A-Z]\w+", str(inspect.signature(verb).return_annotation))
    }
    assert given - set(floodmark.__all__) - {"Any", "Callable", "Iterator", "None"} <= APART
    assert len(given) > 20


def test_a_part_that_says_nothing_is_seen(reference: ModuleType) -> None:
    class Silent:
        @property
        def part(self) -> int:
            return 1

    assert dict(reference.members(Silent)) == {"part": ""}
