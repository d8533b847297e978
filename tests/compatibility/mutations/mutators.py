"""Makes mutations: every way to change one thing in a query's code, by its syntax tree.

Each mutation has a name that stays the same as long as its query does, so that a failure can
be repeated alone. `harmless` are those that cannot change a result; what the others do to the
result is for Spark to say.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from compatibility.mutations import surroundings
from compatibility.mutations.applications import Version
from compatibility.mutations.edits import EDITS, Edit
from compatibility.mutations.harmless import HARMLESS
from compatibility.mutations.more_queries import MORE
from compatibility.mutations.queries import ALL, Query


@dataclass(frozen=True)
class Mutation:
    name: str
    """QUERY/KIND-NUMBER"""
    query: Query
    version: Version
    kind: str
    what: str
    harmless: bool = False
    in_two_runs: bool = False
    """The truth has to stop between the halves, as the change moves the borders of batches."""


def mutations(queries: Iterable[Query] = (*ALL, *MORE)) -> list[Mutation]:
    return [one for query in queries for one in _of(query)]


def named(name: str) -> Mutation:
    query = next(one for one in (*ALL, *MORE) if one.name == name.partition("/")[0])
    return next(one for one in _of(query) if one.name == name)


def _of(query: Query) -> Iterator[Mutation]:
    numbers: Counter[str] = Counter()
    for kind, what, version, harmless, two in _changes(query):
        numbers[kind] += 1
        name = f"{query.name}/{kind}-{numbers[kind]}"
        yield Mutation(name, query, version, kind, what, harmless, two)


def _changes(query: Query) -> Iterator[tuple[str, str, Version, bool, bool]]:
    plain = Version(query)
    seen = {(_same(query.code), _same(query.before))}
    for edits, harmless in ((HARMLESS, True), (EDITS, False)):
        for part in ("code", "before"):
            for kind, what, text in _edited(getattr(query, part), edits):
                code, before = (text, query.before) if part == "code" else (query.code, text)
                meaning = (_same(code), _same(before))
                if kind != "comment" and meaning in seen:
                    continue
                seen.add(meaning)
                # Files of other columns are another output: whoever reads them sees it.
                free = harmless and not (
                    query.sink != "rows" and kind in ("column-after", "renamed-after")
                )
                yield kind, what, plain.with_code(code, before), free, False
    for changes, kind in ((query.easy, "easy"), (query.changes, "by-hand")):
        for old, new in changes:
            assert old in query.code or old in query.before, old
            version = plain.with_code(query.code.replace(old, new), query.before.replace(old, new))
            yield kind, f"{old!r} → {new!r}", version, kind == "easy", False
    for change in surroundings.changes(query):
        yield change.kind, change.what, change.version, change.harmless, change.in_two_runs


def _edited(text: str, edits: Iterable[Callable[[ast.Module], Iterator[Edit]]]) -> Iterator[Edit]:
    if not text:
        return
    for edit in edits:
        yield from edit(ast.parse(text))


@functools.cache
def _same(text: str) -> str:
    return ast.dump(ast.parse(text))
