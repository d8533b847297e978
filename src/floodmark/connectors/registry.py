"""Finds the kinds of sources by the modules of this package, and says which wrote an offset.

To add a kind, add a module, or a folder with `offset.py`: there is no list to keep. Spark keeps no
source name beside an offset. So every kind looks at what is there (the offset's form, its text,
`sources/<id>/0`), and the surest answer counts.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from floodmark.connectors.source import (
    UNKNOWN,
    Recognised,
    SourceKind,
    SourceOffset,
    Sureness,
    Traces,
    parse_offset_text,
)

_NOT_KINDS = frozenset({"behind", "lag", "live", "registry", "sink_memory", "source"})
_COMMON = {"file": "files.offset", "kafka": "kafka.offset", "delta": "delta.offset"}
"""The most common kinds, by name. They are asked first, so that others need not be loaded."""


class UnknownSource(SourceKind):
    any_format = True
    any_form = True


_UNKNOWN = UnknownSource()


@cache
def kinds() -> tuple[SourceKind, ...]:
    """Return every kind, the most common ones first."""
    import pkgutil

    package = importlib.import_module("floodmark.connectors")
    found = [
        f"{module.name}.offset" if module.ispkg else module.name
        for module in pkgutil.iter_modules(package.__path__)
        if module.name not in _NOT_KINDS
    ]
    common = tuple(_COMMON.values())
    return tuple(map(_loaded, (*common, *(one for one in found if one not in common))))


@cache
def _loaded(module: str) -> SourceKind:
    kind: SourceKind = importlib.import_module(f"floodmark.connectors.{module}").KIND
    return kind


def _each() -> Iterator[SourceKind]:
    """Yield every kind, and load it only when its turn comes: most questions end earlier."""
    yield from map(_loaded, _COMMON.values())
    yield from kinds()[len(_COMMON) :]


@cache
def kind_named(name: str) -> SourceKind:
    """Return what is known about a kind; the unknown kind for any other name."""
    if name == UNKNOWN:
        return _UNKNOWN
    if name in _COMMON:
        return _loaded(_COMMON[name])
    return next((kind for kind in _each() if kind.name == name), _UNKNOWN)


def recognise(traces: Traces) -> Recognised | None:
    """Return which kind of source wrote the offset, how sure that is, and what shows it."""
    best: Recognised | None = None
    for kind in _each():
        found = kind.recognise(traces)
        if found is not None and (best is None or found.sureness > best.sureness):
            best = found
            if best.sureness is Sureness.CERTAIN or best.alone:
                break
    return best


def kind_of(offset: Any, initial: bytes | None = None, text: str | None = None) -> str:
    """Return the kind's name. `initial` is the content of `sources/<id>/0`, `text` the raw
    offset.
    """
    found = recognise(Traces(offset, text, initial))
    return UNKNOWN if found is None else found.kind


def read_source_offset(source: str, text: str | None, initial: bytes | None = None) -> SourceOffset:
    """Return the offset with its meaning. `initial` is the content of `sources/<id>/0`."""
    if text is None and initial is None:
        return SourceOffset(source, UNKNOWN, None, None)
    if text is None:
        traces = Traces(None, None, initial)
        began = (kind.name for kind in _each() if kind.began(traces))
        return SourceOffset(source, next(began, UNKNOWN), None, None)
    value = parse_offset_text(text)
    return SourceOffset(source, kind_of(value, initial, text), value, text)


def kind_of_format(declared: str) -> SourceKind | None:
    """Return the kind that format(`declared`) reads; None if floodmark does not know it."""
    named = next((kind for kind in kinds() if declared == kind.name), None)
    return named or next((kind for kind in kinds() if declared in kind.formats), None)


def family(declared: str) -> str:
    """Return the kind that format(`declared`), or a kind's name, counts as."""
    kind = kind_of_format(declared)
    return declared if kind is None else kind.family or kind.name


def look_alikes(kind: str) -> tuple[str, ...]:
    """Return the other kinds whose offsets have the same form: only code or a note can decide."""
    return kind_named(kind).looks_like


def is_alike(kind: str) -> bool:
    """Whether this kind and another one write offsets of the same form."""
    common = map(_loaded, _COMMON.values())
    return bool(look_alikes(kind)) or any(kind in one.looks_like for one in common)


def in_form_of(offset: Any, kind: str) -> bool:
    """Whether this kind can have written the offset, by its form alone."""
    return kind_named(kind).recognise(Traces(offset)) is not None


def has_form_of_several(offset: Any) -> bool:
    """Whether the offset has the form of a kind that has look-alikes."""
    common = map(_loaded, _COMMON.values())
    return any(
        one.recognise(Traces(offset)) is not None
        or any(in_form_of(offset, other) for other in one.looks_like)
        for one in common
        if one.looks_like
    )


def can_be(kind: str, offset: Any) -> bool:
    """Whether the offset can be of this kind; false only for look-alikes with another form."""
    return offset in (None, {}) or not is_alike(kind) or bool(kind_named(kind).topics(offset))


def said_kind(name: str) -> str | None:
    """Return the kind that a format() or a user names, if it is one that looks like another."""
    named = name.strip().lower()
    alike = any(kind.looks_like and named in (kind.name, *kind.looks_like) for kind in _each())
    # JSON of any form can be that of a source written in Python.
    known = kind_named(named)
    return named if alike or (known is not _UNKNOWN and known.any_form) else None


def about(source: SourceOffset) -> SourceKind:
    """Return what is known about the kind of this source."""
    return kind_named(source.kind)


def advance(source: SourceOffset, before: SourceOffset | None) -> list[str]:
    """Return from where to where the newest batch reads: a line a topic, else one line."""
    if source.offset is None:
        return ["no offset yet"]
    start = before.offset if before and before.kind == source.kind else None
    return kind_named(source.kind).explain(source.offset, start)


def advances(
    sources: Iterable[SourceOffset], before: Iterable[SourceOffset]
) -> list[tuple[str, str, str]]:
    """Return (source, kind, from where to where) of each source, or of each of its parts."""
    starts = {source.id: source for source in before}
    return [
        (f"source {source.id}", kind_named(source.kind).shown_as or source.kind, words)
        for source in sources
        for words in advance(source, starts.get(source.id))
    ]
