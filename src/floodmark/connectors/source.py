"""What every kind of source can be asked about its offsets. Pure.

`SourceKind` answers as for a kind of which nothing is known; each kind's module says what it
knows better. Callers ask `registry.kind_named(source.kind)` and never for a kind by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from floodmark.checkpoint.text import compact_json, is_too_deep, shorten
from floodmark.errors import MalformedFile

UNKNOWN = "unknown"
# Python's json.dumps writes a Python source's NaN, which is not JSON: it comes out as text.
_DECODER = json.JSONDecoder(parse_constant=str)
_SHOWN = 90
_BELOW_ZERO = re.compile(rb'"[0-9]+" ?: ?-[0-9]')
LONGS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class SourceOffset:
    """One source's place in one batch."""

    id: str
    kind: str
    offset: Any
    """The offset as JSON data; a text that is not JSON stays a string; None: nothing yet."""
    text: str | None
    """As the source wrote it."""


class Sureness(IntEnum):
    """How sure it is which kind of source wrote an offset."""

    POSSIBLE = 1
    """The form fits; other kinds write the same."""
    PROBABLE = 2
    """Something besides the form speaks for it."""
    CERTAIN = 3
    """No other kind writes this."""


@dataclass(frozen=True)
class Traces:
    """What a source has left in the checkpoint, as far as it tells the kind."""

    offset: Any
    """As JSON data; None where the source has no offset yet."""
    text: str | None = None
    """The offset as it was written: Python's writers put spaces where the JVM's put none."""
    initial: bytes | None = None
    """The content of `sources/<id>/0`, where it was read."""

    @property
    def may_be_pythons(self) -> bool:
        """Python's json.dumps puts spaces where almost no connector of the JVM does."""
        return self.text is not None and (": " in self.text or ", " in self.text)

    @property
    def has_lead_byte(self) -> bool:
        """Kafka's `sources/<id>/0` begins with one byte that every reader skips."""
        return self.initial is not None and (
            self.initial[1:3] == b'{"' or self.initial[:1] == b"\0"
        )

    @property
    def began_below_zero(self) -> bool:
        """`sources/<id>/0` is in Kafka's form and has a number that Kafka never writes."""
        return self.has_lead_byte and _BELOW_ZERO.search(self.initial or b"") is not None

    @property
    def initial_body(self) -> bytes:
        """What follows the version line of `sources/<id>/0`, where no byte stands before it."""
        if self.initial is None or self.has_lead_byte:
            return b""
        return self.initial.partition(b"\n")[2].strip()


@dataclass(frozen=True)
class Recognised:
    kind: str
    sureness: Sureness
    why: str
    alone: bool = False
    """No other kind can be surer: the rest need not be asked."""


@dataclass(frozen=True)
class StartOption:
    """What to set on the reader of a new stream."""

    name: str
    """The option's name, `startingOffsets` for example."""
    value: str
    """The option's value."""
    form: str
    """What `--starting-offsets` prints: the value, or more where one value does not say it all."""


@dataclass(frozen=True)
class Move:
    """How a given offset of one source stands to the checkpoint's own."""

    back: bool = False
    forward: tuple[str, ...] = ()
    """In words: what lies between, and is never read."""


class SourceKind:
    """What is known about one kind of source. The defaults hold where nothing is known."""

    name = UNKNOWN
    shown_as = ""
    """For people, where the name alone says too much."""
    formats: frozenset[str] = frozenset()
    """What format() may name it, besides `name`; empty with `any_format`."""
    any_format = False
    """Its offsets do not tell which format() reads it."""
    family = ""
    """The kind that it counts as where code is compared with a checkpoint; else `name`."""
    any_form = False
    """Its offset can be anything, so that it does not tell the kind."""
    looks_like: tuple[str, ...] = ()
    """Other kinds whose offsets have the same form: only the code, a note or the user can tell."""
    doubt: str | None = None
    """What to say of an option where the kind could be another; `{}` is the source's id."""
    no_option = "floodmark does not know this source's options."
    """Why there is no option that makes a new stream begin at an offset."""
    unit = "records"
    """What `count` counts."""
    goes_by_ids = False
    """Its positions are ids: they count nothing, and have no order."""
    lists_files = False
    """It keeps a list of seen files in `sources/<id>/`, and its offsets name entries of it."""
    named_parts: tuple[str, ...] = ()
    """The names that lead to a place in its offset, from the outermost: topic, partition."""
    may_be_left_out: frozenset[str] = frozenset()
    """Fields of an offset that say more of its own place, and nothing of another one."""
    has_topics = False
    """Its offsets go by names that a user can change: `--map-topic OLD=NEW`."""
    names_table = False
    """Its offsets name the table that they belong to: another one is refused."""
    start_file = "0"
    """The file in `sources/<id>/` that says where it began."""
    start_files: tuple[str, ...] = ()
    """What it keeps in `sources/<id>/` that no rewind has to take back: where it began, schemas."""
    seed_over = "startingOffsets"
    """The option of the reader that a `seed` stands in for."""
    seed_note: str | None = None
    """What to know of a stream that begins with a `seed`."""
    going_back: str | None = None
    """Why it may not read again what it has read: going back is refused, unless accepted."""
    begins_once = False
    """`sources/<id>/0` is read only while no batch is planned."""
    can_be_asked = False
    """A module `live` beside this one asks the real thing."""
    tells_lag = False
    """A module `lag` beside this one tells how far a stream is behind."""
    asked_with: str | None = None
    """The option of `doctor --sources` that says where the real thing is."""
    start_rules: tuple[str, ...] = ()
    """The rules before a start that need the real thing's answer."""

    def recognise(self, traces: Traces) -> Recognised | None:
        """Whether this kind wrote it, and what tells so."""
        return None

    def began(self, traces: Traces) -> bool:
        """Whether this kind wrote `sources/<id>/0`, for a source that has no offset yet."""
        return False

    def explain(self, end: Any, start: Any) -> list[str]:
        """From where (None: not known) to where a batch reads, in words: one line or more."""
        return [arrow(None if start is None else plain(start), plain(end))]

    def reached(self, end: Any) -> str:
        """Where a source stands, in as few words as can be."""
        return shorten(str(end), 40)

    def starting_option(self, source: SourceOffset) -> tuple[StartOption | None, str | None]:
        """What begins a new stream at this offset, and what it does not say or why it is not."""
        return None, self.no_option

    def parts(self, offset: Any) -> dict[tuple[str, ...], Any] | None:
        """The offset's parts by name, where it has such; two offsets are compared by them."""
        return {(str(key),): value for key, value in offset.items()} if _is_object(offset) else None

    def went_back(self, was: Any, now: Any) -> Iterator[tuple[str, str, str]]:
        """(which part, where it was, where it is) of what has an order and goes backwards."""
        before, after = self.place(was), self.place(now)
        if before is not None and after is not None and after < before:
            yield "", str(was), str(now)

    def reads_another(self, was: Any, now: Any) -> str | None:
        """In words: the offset is that of another table, or of other topics."""
        return None

    def place(self, offset: Any) -> tuple[int, ...] | None:
        """Something that grows with the offset; None where that is not known."""
        return (offset,) if type(offset) is int else None

    def compare(self, was: SourceOffset, text: str, now: Any) -> Move:
        """What a given offset (`text`, as data `now`) repeats or leaves out."""
        before, after = self.place(was.offset), self.place(now)
        if before is None or after is None:
            between = f"what lies between the two offsets of source {was.id}"
            return Move(True, (f"{between}, if the given one is later",))
        if after > before:
            name = f"source {was.id} ({was.kind})"
            return Move(forward=(f"what lies between {was.text} and {text} of {name}",))
        return Move(back=True)

    def count(self, start: Any, end: Any) -> int | None:
        """How many of `unit` lie between two offsets, where they tell it."""
        if type(start) is int and type(end) is int:
            return end - start
        return None

    def first_offset(self, initial: bytes | None) -> Any:
        """Where batch 0 began, by `sources/<id>/0`; None where that is not known."""
        return None

    def check_initial(self, data: bytes) -> None:
        """Raises MalformedFile where `sources/<id>/0` is damaged."""
        return

    def seed(self, source: SourceOffset) -> bytes | None:
        """A `start_file` that makes a new stream begin at this offset, where there is such."""
        return None

    def carried_start(self, source: SourceOffset) -> bytes | None:
        """A `start_file` for a stream that goes on after this offset, if the old one may fail."""
        return None

    def start_entry(self, source: SourceOffset) -> dict[str, Any] | None:
        """The place in a start file (`run --start`), where an option of the reader takes it."""
        return None

    def read_again(self, offset: Any) -> str | None:
        """In words: what a stream that begins with the start file's option reads twice."""
        return None

    def in_first_snapshot(self, offset: Any) -> bool:
        """The stream still reads its table's first snapshot, which no option resumes."""
        return False

    def by_name(self, offset: Any) -> Any:
        """The offset with `named_parts` as the names of objects, where it is written otherwise."""
        return offset

    def from_names(self, named: Any, held: Any) -> Any:
        """What `by_name` made, written again as the source's own offset (`held`) is."""
        return named

    def no_place(self, offset: Any) -> tuple[str, str] | None:
        """What in a given offset is no place that a stream can stand at, and why."""
        return None

    def topics(self, offset: Any) -> tuple[str, ...]:
        """The names that the offset goes by, where a user can change them."""
        return ()

    def renamed(self, offset: Any, names: Mapping[str, str]) -> Any:
        """The offset with its topics under new names."""
        return offset

    def renamed_initial(self, data: bytes, names: Mapping[str, str]) -> bytes:
        """`sources/<id>/0` with its topics under new names."""
        return data

    def reads_as(self, declared: str) -> bool:
        """Whether code that reads format(`declared`) can take this kind's offsets."""
        return self.any_format or declared == self.name or declared in self.formats


class FormedKind(SourceKind):
    """A kind whose offsets are JSON objects that their fields alone tell from all others."""

    fields: frozenset[str] = frozenset()
    """What every offset of it has."""
    more_fields: frozenset[str] = frozenset()
    """What some have besides."""
    version_field: str | None = None
    """Where it has the version of its form; only version 1 is known of any kind."""
    whole_numbers: frozenset[str] = frozenset()
    """Which of the fields are whole numbers; others of that name are somebody else's."""
    switches: frozenset[str] = frozenset()
    """Which of the fields are true or false."""
    plain_words = False
    """Its fields are words that others may choose too: Python's spaces speak against it."""
    told_by = ""
    """What these fields are, in words."""

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
        sureness = Sureness.POSSIBLE if is_doubtful else Sureness.CERTAIN
        return Recognised(self.name, sureness, self.told_by)

    def explain(self, end: Any, start: Any) -> list[str]:
        before, after = (self.words(one) if _is_object(one) else None for one in (start, end))
        return [arrow(before, after)]

    def words(self, offset: Mapping[str, Any]) -> str:
        """One offset, for people."""
        return str(plain(offset))


def arrow(start: str | None, end: str | None) -> str:
    return f"{end}" if start is None or start == end else f"{start} → {end}"


def plain(offset: Any) -> str | None:
    text = uncut(offset)
    return text if text is None or len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def uncut(offset: Any) -> str | None:
    """As Spark writes it, for whoever asks for the offsets themselves."""
    return offset if offset is None or isinstance(offset, str) else render_json(offset)


def _is_object(offset: Any) -> bool:
    return isinstance(offset, dict)


def has_fields(offset: Any, needed: frozenset[str], more: frozenset[str] = frozenset()) -> bool:
    """A JSON object with all of these fields, and with no others than these and `more`."""
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
    """JSON as Spark's own writers space it."""
    return compact_json(value)
