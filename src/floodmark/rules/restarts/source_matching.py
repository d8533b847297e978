"""Matches sources of the new code to sources of the checkpoint, by what they read. Pure.

Spark knows a source by its place in the plan. This module knows a source by its kind and by the
topics, the folder or the table that it reads; by name, if the code names its sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from floodmark.checkpoint.outline import SourceOutline
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.connectors.kafka.subscription import subscribed_topics
from floodmark.connectors.registry import about, family, kind_named, look_alikes
from floodmark.connectors.source import SourceOffset

_GLOB = re.compile(r"[*?\[{]")
# Options that change how a source is read, not what: they may differ for the same source.
_HOW = ("starting", "ending", "max", "min", "latestfirst", "failondataloss", "kafka.group")
_OTHER, _PERHAPS, _IN_PART, _SAME, _EXACTLY = range(5)


@dataclass(frozen=True)
class HeldSource:
    """A source of the checkpoint, with everything that is known about it."""

    position: SourceOffset
    noted: SourceOutline | None = None
    """The source in the note of the last start, or in the old code."""
    file: str | None = None
    """A file that it has read."""
    by_name: bool = False
    """Whether its id is the name that the code gave it."""
    number: int = 0
    """Its number in the old code's plan; lines with names have another order."""
    is_said: bool = False
    """Whether the user has given its kind, because its offsets look like another kind's."""

    @property
    def name(self) -> str | None:
        if self.by_name:
            return self.position.id
        return self.noted.name if self.noted is not None else None

    @property
    def kind(self) -> str:
        own = self.position.kind
        if self.noted is not None and (
            about(self.position).any_form
            or self.position.offset is None
            or family(self.noted.kind) == family(own)
            or self.noted.kind in look_alikes(own)
        ):
            return self.noted.kind
        return own

    @property
    def topics(self) -> frozenset[str] | None:
        if about(self.position).has_topics and isinstance(self.position.offset, dict):
            return frozenset(self.position.offset)
        return None if self.noted is None else _topics(self.noted)

    @property
    def table(self) -> str | None:
        offset = self.position.offset
        if about(self.position).names_table and isinstance(offset, dict):
            return str(offset.get("reservoirId"))
        return None

    @property
    def words(self) -> str:
        topics = self.topics
        if topics:
            return f"{self.kind} {', '.join(sorted(topics))}"
        if self.noted is not None:
            return source_words(self.noted)
        folder = f" ({self.file.rpartition('/')[0]})" if self.file else ""
        return f"{self.kind}{folder}"


def source_words(source: SourceOutline) -> str:
    """Return a source's kind and what it reads: `kafka orders`."""
    return f"{source.kind} {source.place or ''}".rstrip()


@dataclass(frozen=True)
class SourceMatching:
    pairs: tuple[int | None, ...] = ()
    """For each source of the new code its place in the checkpoint; None if it is new."""
    removed: tuple[int, ...] = ()
    """Places in the checkpoint without a source in the new code."""
    unclear: tuple[str, ...] = ()
    """Sentences that name sources which nobody can tell apart."""
    assumed: frozenset[int] = frozenset()
    """Sources of the new code that are matched only by kind and place: what the checkpoint's
    source read is not known."""

    @cached_property
    def added(self) -> tuple[int, ...]:
        return tuple(at for at, old in enumerate(self.pairs) if old is None)

    @property
    def moved(self) -> tuple[tuple[int, int], ...]:
        """(new place, old place) of kept sources that changed their place."""
        found = enumerate(self.pairs)
        return tuple((at, old) for at, old in found if old is not None and old != at)

    @property
    def is_same(self) -> bool:
        return not (self.added or self.removed or self.moved or self.unclear)

    @property
    def replaced(self) -> tuple[tuple[int, int], ...]:
        """(new place, old place) of sources, if as many were added as removed."""
        if len(self.added) != len(self.removed):
            return ()
        return tuple(zip(self.added, self.removed, strict=True))


@dataclass
class _Pairing:
    held: Sequence[HeldSource]
    new: Sequence[SourceOutline]
    likeness: Callable[[int, int], int]
    pairs: dict[int, int] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    """New places that a weaker likeness may not decide."""

    @property
    def assumed(self) -> frozenset[int]:
        found = self.pairs.items()
        return frozenset(at for at, old in found if self.likeness(at, old) == _PERHAPS)

    def run(self) -> None:
        for level in (_EXACTLY, _SAME, _IN_PART, _PERHAPS):
            if level == _PERHAPS and len(self.held) == len(self.new):
                for at in self._open_new():
                    if at in self._open_old() and self.likeness(at, at) == level:
                        self.pairs[at] = at
            for news, olds in list(self._groups(level)):
                self._settle(news, olds, level)

    def _open_new(self) -> list[int]:
        return [
            at for at in range(len(self.new)) if at not in self.pairs | dict.fromkeys(self.settled)
        ]

    def _open_old(self) -> list[int]:
        taken = set(self.pairs.values())
        return [old for old in range(len(self.held)) if old not in taken]

    def _groups(self, level: int) -> Iterator[tuple[list[int], list[int]]]:
        """Yield groups of sources that are alike at this level, directly or through another."""
        news, olds = self._open_new(), self._open_old()
        while news:
            mine, theirs = {news[0]}, set[int]()
            while True:
                more = {old for old in olds for at in mine if self.likeness(at, old) == level}
                back = {at for at in news for old in more if self.likeness(at, old) == level}
                if more <= theirs and back <= mine:
                    break
                theirs |= more
                mine |= back
            news = [at for at in news if at not in mine]
            olds = [old for old in olds if old not in theirs]
            if theirs:
                yield sorted(mine), sorted(theirs)

    def _settle(self, news: list[int], olds: list[int], level: int) -> None:
        whole = all(self.likeness(at, old) == level for at in news for old in olds)
        if len(news) == len(olds) and whole:
            self.pairs.update(zip(news, olds, strict=True))
            return
        self.settled.update(news)
        self.unclear.append(
            f"{_places(news)} of the new code can be {_places(olds).lower()} of the checkpoint "
            f"({', '.join(self.held[old].words for old in olds)})."
        )


def match_sources(
    held: Sequence[HeldSource],
    new: Sequence[SourceOutline],
    tables: Mapping[int, str],
    told: Mapping[int, int],
) -> SourceMatching:
    """Return the matching of sources.

    `tables`: new place → the id of the Delta table there; `told`: new place → old place.
    """
    known: dict[tuple[int, int], int] = {}

    def likeness(at: int, old: int) -> int:
        if (at, old) not in known:
            known[at, old] = _likeness(held[old], new[at], tables.get(at))
        return known[at, old]

    pairing = _Pairing(held, new, likeness, dict(told))
    pairing.run()
    if pairing.unclear:
        return SourceMatching(unclear=tuple(pairing.unclear))
    pairs = tuple(pairing.pairs.get(at) for at in range(len(new)))
    assumed = pairing.assumed - set(told)
    return SourceMatching(pairs, tuple(pairing._open_old()), assumed=assumed)


def _places(found: Sequence[int]) -> str:
    if len(found) == 1:
        return f"Source {found[0]}"
    return f"Sources {', '.join(map(str, found[:-1]))} and {found[-1]}"


def _likeness(held: HeldSource, new: SourceOutline, table: str | None) -> int:
    by_kind = _by_kind(held, new)
    if held.name is not None and new.name is not None:
        # A name says which source wrote the offset, but another kind still cannot read it.
        return _EXACTLY if held.name == new.name and by_kind != _OTHER else _OTHER
    if by_kind != _SAME:
        return by_kind
    known = kind_named(family(held.kind))
    if known.has_topics:
        found = _by_topics(held, new)
    elif known.lists_files:
        found = _by_folder(held, new)
    elif known.names_table:
        found = _by_table(held, new, table)
    elif held.noted is None:
        found = _PERHAPS
    else:
        found = _SAME if held.noted.place == new.place else _OTHER
    if found == _SAME and held.noted is not None and _read_alike(held.noted, new):
        return _EXACTLY
    return found


def _by_kind(held: HeldSource, new: SourceOutline) -> int:
    if held.noted is None and about(held.position).any_form:
        return _PERHAPS
    if family(held.kind) == family(new.kind):
        return _SAME
    is_unsaid = held.noted is None and not held.is_said
    is_alike = is_unsaid and new.kind in look_alikes(held.position.kind)
    return _PERHAPS if is_alike else _OTHER


def _read_alike(noted: SourceOutline, new: SourceOutline) -> bool:
    def kept_options(one: SourceOutline) -> dict[str, str]:
        return {key: value for key, value in one.options.items() if not key.startswith(_HOW)}

    return noted.kind == new.kind and kept_options(noted) == kept_options(new)


def _topics(source: SourceOutline) -> frozenset[str] | None:
    """Return the topics that the source subscribes to by name."""
    return frozenset(subscribed_topics(source.options)) or None


def _by_topics(held: HeldSource, new: SourceOutline) -> int:
    pattern = new.options.get("subscribepattern")
    noted = held.noted.options if held.noted is not None else {}
    if pattern is not None and noted.get("subscribepattern") == pattern:
        return _SAME
    before, after = held.topics, _topics(new)
    if before is not None and pattern is not None:
        try:
            fits = frozenset(topic for topic in before if re.fullmatch(pattern, topic))
        except re.error:
            return _PERHAPS
        return _SAME if fits == before else _IN_PART if fits else _OTHER
    if before is None or after is None:
        return _PERHAPS
    return _SAME if before == after else _IN_PART if before & after else _OTHER


def _by_folder(held: HeldSource, new: SourceOutline) -> int:
    now = new.place
    if now is None:
        return _PERHAPS
    was = held.noted.place if held.noted is not None else None
    if was is not None:
        if plain_path(was) == plain_path(now):
            return _SAME
        if is_whole(was) == is_whole(now):
            return _IN_PART if _overlap(was, now) else _OTHER
        # One path begins at the working directory: the files that were read decide.
        short, whole = (now, was) if is_whole(was) else (was, now)
        if plain_path(whole).endswith(plain_path(short).removeprefix("/.")):
            return _SAME
    inside = None if held.file is None else reads(new, held.file)
    if inside is None:
        return _PERHAPS
    return (_SAME if was is None else _IN_PART) if inside else _OTHER


def _by_table(held: HeldSource, new: SourceOutline, table: str | None) -> int:
    was = held.noted.place if held.noted is not None else None
    if was is not None and new.place is not None and plain_path(was) == plain_path(new.place):
        return _SAME
    if held.table is not None and table is not None:
        return _SAME if held.table == table else _OTHER
    return _OTHER if was is not None and new.place is not None else _PERHAPS


def is_whole(path: str) -> bool:
    return path.startswith("/") or ":" in path


def _overlap(one: str, other: str) -> bool:
    """Whether a file may be below both paths, as far as the text shows."""
    first, second = (plain_path(_GLOB.split(path)[0]).rstrip("/") for path in (one, other))
    if _GLOB.search(one) or _GLOB.search(other):
        return first.startswith(second) or second.startswith(first)
    return f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")


_ALIKE = {
    "s3a": "s3",
    "s3n": "s3",
    "hdfs": "",
    "webhdfs": "",
    "swebhdfs": "",
    "viewfs": "",
    "file": "",
}


def plain_path(location: str) -> str:
    """Return the place without the parts that differ between two spellings of it."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return "/" + location.strip("/")
    if scheme in ("hdfs", "webhdfs", "swebhdfs", "viewfs") and rest.startswith("//"):
        rest = rest[2:].partition("/")[2]  # a name node's address differs by protocol
    return f"{_ALIKE.get(scheme, scheme)}/{rest.strip('/')}"


def is_same_folder(before: str | None, after: str | None) -> bool:
    """Whether two paths are surely one folder: `/out/` and `/out`, `s3a://b/out` and `s3://b/out`.

    `/out` is on the session's own file system, so it may be another folder than `file:/out`.
    """
    if before is None or after is None:
        return before == after
    return _spelled(before) == _spelled(after)


def may_be_one_folder(before: str | None, after: str | None) -> bool:
    """Whether two paths can be one folder: one may lack its scheme, or the start of its path."""
    if before is None or after is None:
        return before == after
    (one, old), (other, new) = _spelled(before), _spelled(after)
    if one and other:
        return (one, old) == (other, new)
    if is_whole(before) == is_whole(after):
        return plain_path(before) == plain_path(after)
    short, whole = (after, before) if is_whole(before) else (before, after)
    return plain_path(whole).endswith(plain_path(short).removeprefix("/."))


def _spelled(location: str) -> tuple[str, str]:
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "", location
    has_address = colon and rest.startswith("//") and not rest.startswith("///")
    root = "//" if has_address else "/" if rest.startswith("/") else ""
    path = "/".join(part for part in rest.split("/") if part)
    return _ALIKE.get(scheme) or scheme, f"{root}{path}"


def reads(source: SourceOutline, file: str) -> bool | None:
    """Whether a file is in a place that a source reads; None if its path does not show it."""
    path = source.place
    if source.kind not in FILE_SOURCES or path is None or _GLOB.search(path):
        return None
    folder, there = plain_path(path).rstrip("/") + "/", plain_path(file)
    return there.startswith(folder) or (not is_whole(path) and folder in there)
