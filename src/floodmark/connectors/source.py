"""Defines what every kind of source can be asked about its offsets. Pure.

`SourceKind` has the answers for an unknown kind; each kind's module overrides what it knows better.
Callers ask `registry.kind_named(source.kind)` and never name a kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from typing import Any

from floodmark.checkpoint.text import compact_json, is_too_deep, shorten
from floodmark.errors import MalformedFile

UNKNOWN = "unknown"


def _finite(text: str) -> float | str:
    """Return the number; its text if it is beyond a float (1e999), which JSON could not show."""
    number = float(text)
    return number if isfinite(number) else text


# json.dumps writes NaN for a Python source, which is not JSON: it is read as text.
_DECODER = json.JSONDecoder(parse_constant=str, parse_float=_finite)
_SHOWN = 90
_BELOW_ZERO = re.compile(rb'"[0-9]+" ?: ?-[0-9]')
LONGS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class SourceOffset:
    """One source's position in one batch."""

    id: str
    kind: str
    offset: Any
    """The offset as JSON data; a text that is not JSON stays a string; None: no offset yet."""
    text: str | None
    """The offset's text as the source wrote it."""


class Sureness(IntEnum):
    """How sure it is which kind of source wrote an offset."""

    POSSIBLE = 1
    """The form fits, but other kinds write the same form."""
    PROBABLE = 2
    """Something besides the form speaks for it."""
    CERTAIN = 3
    """No other kind writes this."""


@dataclass(frozen=True)
class Traces:
    """What a source has left in the checkpoint that shows its kind."""

    offset: Any
    """The offset as JSON data; None if the source has no offset yet."""
    text: str | None = None
    """The offset as it was written: Python's writers put spaces where the JVM's do not."""
    initial: bytes | None = None
    """The content of `sources/<id>/0`, if it was read."""

    @property
    def may_be_pythons(self) -> bool:
        """Whether the text has spaces as Python's json.dumps puts them, and almost no JVM
        connector.
        """
        return self.text is not None and (": " in self.text or ", " in self.text)

    @property
    def has_lead_byte(self) -> bool:
        """Whether `sources/<id>/0` begins as Kafka's: with one byte that every reader skips."""
        return self.initial is not None and (
            self.initial[1:3] == b'{"' or self.initial[:1] == b"\0"
        )

    @property
    def began_below_zero(self) -> bool:
        """Whether `sources/<id>/0` has Kafka's form and a number that Kafka never writes."""
        return self.has_lead_byte and _BELOW_ZERO.search(self.initial or b"") is not None

    @property
    def initial_body(self) -> bytes:
        """What follows the version line of `sources/<id>/0`, if no byte stands before it."""
        if self.initial is None or self.has_lead_byte:
            return b""
        return self.initial.partition(b"\n")[2].strip()


@dataclass(frozen=True)
class Recognised:
    kind: str
    sureness: Sureness
    why: str
    alone: bool = False
    """Whether no other kind can be surer, so that the others need not be asked."""


@dataclass(frozen=True)
class StartOption:
    """The option to set on the reader of a new stream."""

    name: str
    """The option's name, `startingOffsets` for example."""
    value: str
    """The option's value."""
    form: str
    """What `--starting-offsets` prints: the value, or more if one value does not say everything."""


@dataclass(frozen=True)
class Move:
    """How an offset that the user gives differs from the checkpoint's own."""

    back: bool = False
    forward: tuple[str, ...] = ()
    """What lies between and is never read, in words."""


class SourceKind:
    """What is known about one kind of source. The defaults are for an unknown kind."""

    name = UNKNOWN
    shown_as = ""
    """The name to show, if `name` alone says too much."""
    formats: frozenset[str] = frozenset()
    """Its other names in format(), besides `name`; empty with `any_format`."""
    any_format = False
    """Whether its offsets do not show which format() reads it."""
    family = ""
    """The kind that it counts as when code is compared with a checkpoint; empty: `name`."""
    any_form = False
    """Whether its offset can be anything, so that it does not show the kind."""
    looks_like: tuple[str, ...] = ()
    """Other kinds whose offsets have the same form: only the code, a note or the user can tell."""
    doubt: str | None = None
    """The note on an option if the kind could be another; `{}` is the source's id."""
    no_option = "floodmark does not know this source's options."
    """Why no option can start a new stream at an offset."""
    unit = "records"
    """The unit of `count`."""
    goes_by_ids = False
    """Whether its positions are ids, which count nothing and have no order."""
    lists_files = False
    """Whether it keeps a list of seen files in `sources/<id>/`, and its offsets name entries."""
    named_parts: tuple[str, ...] = ()
    """The names that lead to a place in its offset, from the outermost: topic, partition."""
    may_be_left_out: frozenset[str] = frozenset()
    """Optional fields of an offset, which only say more about the same position."""
    has_topics = False
    """Whether its offsets contain names that a user can change: `--map-topic OLD=NEW`."""
    names_table = False
    """Whether its offsets name their table: another table is refused."""
    start_file = "0"
    """The file in `sources/<id>/` that says where it began."""
    start_files: tuple[str, ...] = ()
    """Files in `sources/<id>/` that a rewind does not have to change: the start, schemas."""
    seed_over = "startingOffsets"
    """The reader's option that a `seed` replaces."""
    seed_note: str | None = None
    """A note on a stream that begins with a `seed`."""
    going_back: str | None = None
    """Why it may be unable to read old data again: going back is refused unless accepted."""
    begins_once = False
    """Whether `sources/<id>/0` is read only while no batch is planned."""
    can_be_asked = False
    """Whether a module `live` beside this one asks the real source."""
    tells_lag = False
    """Whether a module `lag` beside this one computes how far a stream is behind."""
    asked_with: str | None = None
    """The option of `doctor --sources` that gives the location of the real source."""
    start_rules: tuple[str, ...] = ()
    """The rules before a start that need the real source's answer."""

    def certain(self, why: str) -> Recognised:
        return Recognised(self.name, Sureness.CERTAIN, why)

    def probable(self, why: str, alone: bool = False) -> Recognised:
        return Recognised(self.name, Sureness.PROBABLE, why, alone)

    def possible(self, why: str, alone: bool = False) -> Recognised:
        return Recognised(self.name, Sureness.POSSIBLE, why, alone)

    def recognise(self, traces: Traces) -> Recognised | None:
        """Return whether this kind wrote the offset, and what shows it."""
        return None

    def began(self, traces: Traces) -> bool:
        """Whether this kind wrote `sources/<id>/0`, for a source that has no offset yet."""
        return False

    def explain(self, end: Any, start: Any) -> list[str]:
        """Return from where (None: not known) to where a batch reads, in one line or more."""
        return [arrow(None if start is None else plain(start), plain(end))]

    def reached(self, end: Any) -> str:
        """Return where a source stands, in as few words as possible."""
        return shorten(str(end), 40)

    def starting_option(self, source: SourceOffset) -> tuple[StartOption | None, str | None]:
        """Return the option that starts a stream at this offset, and a note on it or on its
        absence.
        """
        return None, self.no_option

    def parts(self, offset: Any) -> dict[tuple[str, ...], Any] | None:
        """Return the offset's parts by name, if it has parts; two offsets are compared by them."""
        return {(str(key),): value for key, value in offset.items()} if _is_object(offset) else None

    def went_back(self, was: Any, now: Any) -> Iterator[tuple[str, str, str]]:
        """Yield (which part, old position, new position) of the parts that go backwards."""
        before, after = self.place(was), self.place(now)
        if before is not None and after is not None and after < before:
            yield "", str(was), str(now)

    def reads_another(self, was: Any, now: Any) -> str | None:
        """Return in words that the offset is of another table or of other topics; None if not."""
        return None

    def place(self, offset: Any) -> tuple[int, ...] | None:
        """Return something that grows with the offset; None if that is not known."""
        return (offset,) if type(offset) is int else None

    def compare(self, was: SourceOffset, text: str, now: Any) -> Move:
        """Return what a given offset (`text`, as data `now`) repeats or leaves out."""
        before, after = self.place(was.offset), self.place(now)
        if before is None or after is None:
            between = f"everything between the two offsets of source {was.id}"
            return Move(True, (f"{between}, if the given one is later",))
        if after > before:
            name = f"source {was.id} ({was.kind})"
            return Move(forward=(f"everything between {was.text} and {text} of {name}",))
        return Move(back=True)

    def count(self, start: Any, end: Any) -> int | None:
        """Return how many of `unit` lie between two offsets; None if they do not show it."""
        if type(start) is int and type(end) is int:
            return end - start
        return None

    def first_offset(self, initial: bytes | None) -> Any:
        """Return where batch 0 began, by `sources/<id>/0`; None if that is not known."""
        return None

    def check_offset(self, offset: Any) -> None:
        """Raise MalformedFile if the offset has this kind's fields, but with other content."""
        return

    def check_initial(self, data: bytes) -> None:
        """Raise MalformedFile if `sources/<id>/0` is damaged."""
        return

    def seed(self, source: SourceOffset) -> bytes | None:
        """Return a `start_file` that makes a new stream begin at this offset, if there is one."""
        return None

    def carried_start(self, source: SourceOffset) -> bytes | None:
        """Return a `start_file` for a stream that goes on after this offset, if the old one may
        fail.
        """
        return None

    def start_entry(self, source: SourceOffset) -> dict[str, Any] | None:
        """Return the position in a start file (`run --start`), if an option of the reader takes
        it.
        """
        return None

    def read_again(self, offset: Any) -> str | None:
        """Return in words what a stream that begins with the start file's option reads twice."""
        return None

    def in_first_snapshot(self, offset: Any) -> bool:
        """Whether the stream still reads its table's first snapshot, which no option resumes."""
        return False

    def by_name(self, offset: Any) -> Any:
        """Return the offset as objects with the names of `named_parts`."""
        return offset

    def from_names(self, named: Any, held: Any) -> Any:
        """Return what `by_name` made in the form of the source's own offset (`held`)."""
        return named

    def no_place(self, offset: Any) -> tuple[str, str] | None:
        """Return the part of a given offset where no stream can stand, and why."""
        return None

    def topics(self, offset: Any) -> tuple[str, ...]:
        """Return the names in the offset that a user can change."""
        return ()

    def renamed(self, offset: Any, names: Mapping[str, str]) -> Any:
        """Return the offset with new topic names."""
        return offset

    def renamed_initial(self, data: bytes, names: Mapping[str, str]) -> bytes:
        """Return `sources/<id>/0` with new topic names."""
        return data

    def reads_as(self, declared: str) -> bool:
        """Whether code that reads format(`declared`) can use this kind's offsets."""
        return self.any_format or declared == self.name or declared in self.formats


class FormedKind(SourceKind):
    """A kind whose offsets are JSON objects with fields that no other kind has."""

    fields: frozenset[str] = frozenset()
    """The fields of every offset."""
    more_fields: frozenset[str] = frozenset()
    """Fields that only some offsets have."""
    version_field: str | None = None
    """The field with the version of the form; only version 1 of any kind is known."""
    whole_numbers: frozenset[str] = frozenset()
    """The fields that must be whole numbers."""
    switches: frozenset[str] = frozenset()
    """The fields that must be true or false."""
    plain_words = False
    """Whether its fields are common words, so that Python's spaces make the kind doubtful."""
    told_by = ""
    """What the fields are, in words."""

    def has_form(self, offset: Any) -> bool:
        if not has_fields(offset, self.fields, self.more_fields):
            return False
        if any(type(offset[one]) is not bool for one in self.switches):
            return False
        if any(
            type(offset[one]) is not int or offset[one] not in LONGS for one in self.whole_numbers
        ):
            return False
        return self.version_field is None or offset[self.version_field] == 1

    def recognise(self, traces: Traces) -> Recognised | None:
        if not self.has_form(traces.offset):
            return None
        is_doubtful = self.plain_words and traces.may_be_pythons
        return self.possible(self.told_by) if is_doubtful else self.certain(self.told_by)

    def explain(self, end: Any, start: Any) -> list[str]:
        before, after = (self.words(one) if _is_object(one) else None for one in (start, end))
        return [arrow(before, after)]

    def words(self, offset: Mapping[str, Any]) -> str:
        """Return one offset in words."""
        return str(plain(offset))


def arrow(start: str | None, end: str | None) -> str:
    return f"{end}" if start is None or start == end else f"{start} → {end}"


def plain(offset: Any) -> str | None:
    text = uncut(offset)
    return text if text is None or len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def uncut(offset: Any) -> str | None:
    """Return the offset as Spark writes it, for users who ask for the offsets themselves."""
    return offset if offset is None or isinstance(offset, str) else render_json(offset)


def _is_object(offset: Any) -> bool:
    return isinstance(offset, dict)


def has_fields(offset: Any, needed: frozenset[str], more: frozenset[str] = frozenset()) -> bool:
    """Whether the offset is an object with all needed fields, and no others than `more`."""
    return isinstance(offset, dict) and needed <= offset.keys() <= needed | more


def parse_offset_text(text: str) -> Any:
    if is_too_deep(text):
        raise MalformedFile(f"the offset is nested too deeply: {shorten(text)!r}")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        if text[:1] in "{[" and text:
            raise MalformedFile(f"the offset is not JSON: {shorten(text)!r}") from None
        return text


def render_json(value: Any) -> str:
    """Return JSON with the spacing of Spark's own writers."""
    return compact_json(value)
