"""Reads offsets that a user gives, in the form that `floodmark offsets` prints.

A source, topic, partition or shard that they do not name stays where it is, and the plan says so.
An offset whose names floodmark does not know must be given completely.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.text import shorten
from floodmark.connectors.kafka.offset import is_kafka_form
from floodmark.connectors.registry import about, kind_of
from floodmark.connectors.source import Move, SourceOffset, parse_offset_text, render_json
from floodmark.errors import MalformedFile, WrongUse

_PRINTED = "`floodmark offsets CP --json` prints the offsets in this form, for editing."
_WHOLE = 100  # levels: deeper than any offset that is read
_NAMED = 6


@dataclass(frozen=True)
class GivenOffsets:
    texts: Mapping[str, str]
    """The complete offset for each source."""
    notes: tuple[str, ...]
    """The parts that the file does not name, and that so stay where they are."""


def compare(was: SourceOffset, text: str) -> Move:
    """Compare the given offset with the source's position."""
    now = parse_offset_text(text)
    if was.offset is None or now == was.offset:
        return Move()
    return about(was).compare(was, text, now)


def parse_given(data: bytes, checkpoint: Checkpoint, origin: str) -> GivenOffsets:
    """Parse given offsets; partitions and sources that they do not name stay where they are."""
    try:
        value = json.loads(data, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise MalformedFile(
            f"{origin}: not a file of offsets", f"It is not JSON: {error}", _PRINTED
        ) from None
    batch = checkpoint.committed_batch
    sources = {} if batch is None else {s.id: s for s in checkpoint.sources_of(batch)}
    given = _by_source(value, sources, origin)
    for name in given:
        if name not in sources:
            raise WrongUse(
                f"{origin}: the checkpoint has no source {name!r}",
                f"Its sources are {', '.join(sources)}.",
                _PRINTED,
            )
    # A source that has read nothing yet is printed as null, and stays so.
    moved = {
        name: offset
        for name, offset in given.items()
        if offset is not None or sources[name].offset is not None
    }
    texts = {name: _whole(sources[name], offset, origin) for name, offset in moved.items()}
    return GivenOffsets(texts, tuple(_left(sources, moved)))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{shorten(twice)!r} stands twice in one object")
    return value


def _by_source(value: Any, sources: Mapping[str, SourceOffset], origin: str) -> dict[str, Any]:
    if isinstance(value, dict) and isinstance(value.get("sources"), list):
        named = [item for item in value["sources"] if isinstance(item, dict)]
        if named and all("id" in item for item in named):  # offsets --json
            return _without_twins([(str(one["id"]), one.get("offset")) for one in named], origin)
        if all(isinstance(one.get("offsets"), dict) for one in named):  # a start file
            fitting = [(_of_topics(one["offsets"], sources), one["offsets"]) for one in named]
            known = [(source, at) for source, at in fitting if source is not None]
            if known and len(known) == len(value["sources"]):
                return _without_twins(known, origin)
    if isinstance(value, dict) and value and value.keys() <= sources.keys():
        return value
    source = _of_topics(value, sources)
    if source is not None:
        return {source: value}
    raise MalformedFile(
        f"{origin}: it has no offsets for this checkpoint",
        f"Its sources are {', '.join(sources) or 'none'}.",
        'Give {"0": OFFSET}, by source, or what `floodmark offsets CP --json` prints.',
    )


def _without_twins(found: list[tuple[str, Any]], origin: str) -> dict[str, Any]:
    by_source = dict(found)
    if len(by_source) < len(found):
        raise WrongUse(
            f"{origin}: one source is given two offsets",
            "Floodmark cannot tell which of them is meant.",
            _PRINTED,
        )
    return by_source


def _of_topics(value: Any, sources: Mapping[str, SourceOffset]) -> str | None:
    """Return the only source whose topics these can be."""
    if not is_kafka_form(value):
        return None
    readers = {name: one.offset for name, one in sources.items() if is_kafka_form(one.offset)}
    fitting = [name for name, held in readers.items() if set(value) & set(held)] or list(readers)
    return fitting[0] if len(fitting) == 1 else None


def _whole(source: SourceOffset, given: Any, origin: str) -> str:
    """Return the offset's text; parts that are not given stay as the source has them."""
    kind, held = about(source), source.offset
    if held is None:
        raise WrongUse(
            f"{origin}: source {source.id} has no offset yet",
            "No batch has read it, so there is nothing to move.",
            "Leave it out: it begins as the code says.",
        )
    if not _same_form(given, held):
        raise WrongUse(
            f"{origin}: source {source.id} is {source.kind}, but this is not an offset of that "
            f"kind",
            f"The checkpoint has {shorten(source.text or '', 90)}.",
            _PRINTED,
        )
    if given == held:
        return source.text or ""
    levels = len(kind.named_parts)
    named = kind.by_name(held), kind.by_name(given)
    _refuse_unknown(source, *named, origin)
    if not levels:
        _require_all_fields(source, given, origin)
    whole = kind.from_names(_laid_over(*named, levels), held)
    wrong = kind.no_place(whole)
    if wrong is not None:
        what, why = wrong
        do = "Give the number of the first record to read."
        raise WrongUse(f"{origin}: {what}", why, do)
    text = _as_written(source, whole)
    if isinstance(whole, str) and (parse_offset_text(text) != whole or not _fits_a_line(text)):
        raise WrongUse(
            f"{origin}: source {source.id}: {shorten(whole)!r} would be read as something else",
            "An offset is one line of text in the offset log, and `-` there means no offset.",
            _PRINTED,
        )
    return text


def _fits_a_line(text: str) -> bool:
    return text != "-" and text.splitlines() == [text]


def _same_form(given: Any, held: Any) -> bool:
    if type(given) is not type(held):
        return False
    # A given -1 or -2 is a wrong position in a topic, but not another source's offset.
    return (is_kafka_form(given) and is_kafka_form(held)) or kind_of(given) == kind_of(held)


def _laid_over(held: Any, given: Any, levels: int) -> Any:
    if not levels or not isinstance(held, dict) or not isinstance(given, dict):
        return given
    return {
        **{
            name: _laid_over(at, given[name], levels - 1) if name in given else at
            for name, at in held.items()
        },
        **{name: at for name, at in given.items() if name not in held},
    }


def _not_in(some: Any, other: Any, levels: int) -> Iterator[tuple[str, ...]]:
    """Yield the names in one value that the other does not have, down to these levels."""
    if not levels or not isinstance(some, dict) or not isinstance(other, dict):
        return
    for name, at in some.items():
        if name not in other:
            yield (name,)
        else:
            yield from ((name, *below) for below in _not_in(at, other[name], levels - 1))


def _refuse_unknown(source: SourceOffset, held: Any, given: Any, origin: str) -> None:
    kind = about(source)
    for path in _not_in(given, held, len(kind.named_parts)):
        word = kind.named_parts[len(path) - 1]
        if path[-1] in getattr(kind, "more_fields", ()):
            continue  # some offsets of the kind have it, and others do not
        there = held
        for name in path[:-1]:
            there = there[name]
        new = (
            f" A {word} that is new to the stream is read from its start."
            if word == "partition"
            else ""
        )
        raise WrongUse(
            f"{origin}: {' '.join(path[:-1]) or 'source ' + source.id} has no {word} "
            f"{shorten(path[-1])} in the checkpoint",
            f"It has {shorten(', '.join(there), 90)}.{new}",
            f"Leave the {word} out: a stream cannot be given one that it never read.",
        )


def _require_all_fields(source: SourceOffset, given: Any, origin: str) -> None:
    """Refuse an incomplete offset if floodmark does not know its parts by name."""
    kind = about(source)
    # In an offset of any form, a name may be at any depth.
    gone = _not_in(source.offset, given, _WHOLE if kind.any_form else 1)
    left = [" ".join(path) for path in gone if path[-1] not in kind.may_be_left_out]
    if left:
        raise WrongUse(
            f"{origin}: the offset of source {source.id} ({source.kind}) leaves out {left[0]}",
            f"Floodmark does not know what that would do. The checkpoint has "
            f"{shorten(source.text or '', 90)}.",
            f"Give the whole offset. {_PRINTED}",
        )


def _as_written(source: SourceOffset, value: Any) -> str:
    """Write a value with the source's own spacing, as sources compare offsets by their text."""
    if isinstance(value, str) and source.text == source.offset:
        return value  # a text that is no JSON
    spaced = source.text == json.dumps(source.offset)
    return json.dumps(value) if spaced else render_json(value)


def _left(sources: Mapping[str, SourceOffset], given: Mapping[str, Any]) -> Iterator[str]:
    for source in sources.values():
        name, kind = f"source {source.id} ({source.kind})", about(source)
        if source.offset is None:
            continue
        if source.id not in given:
            yield f"{name[0].upper()}{name[1:]} stays where it is: the file does not name it."
            continue
        named = kind.by_name(source.offset), kind.by_name(given[source.id])
        left = [
            " ".join([*path[:-1], kind.named_parts[len(path) - 1], path[-1]])
            for path in _not_in(*named, len(kind.named_parts))
        ]
        if left:
            more = f" and {len(left) - _NAMED:,} more" if len(left) > _NAMED else ""
            verb = "stays where it is" if len(left) == 1 else "stay where they are"
            yield (
                f"Of {name}, {', '.join(left[:_NAMED])}{more} {verb}: the file does not name "
                f"{'it' if len(left) == 1 else 'them'}."
            )
