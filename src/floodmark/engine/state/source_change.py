"""Which sources the new code has, where new ones begin and what is left of those that go.

Asks the real sources where only they can tell: a topic's ends, a table's newest version, the
files of a folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.changes.carry.changed_sources import KeptSource, NewSource, SourceChange
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.resume_point import ResumePoint
from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.registry import about, family
from floodmark.engine.code.drawing import Drawing
from floodmark.engine.state.source_starts import begin
from floodmark.engine.state.unread_input import unread
from floodmark.errors import CannotRead, NotCarried, WrongUse
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.kept_branches import sources_of
from floodmark.rules.restarts.source_changes import DROPPED_SOURCE, convert_command
from floodmark.rules.restarts.source_matching import (
    HeldSource,
    SourceMatching,
    source_words,
)

GOES_ON = "source:"
_PLACE_CHANGED = "source-place-changed"


@dataclass(frozen=True)
class SourceStarts:
    """What --start says: source of the new code → where it begins."""

    given: Mapping[int, str]

    @property
    def goes_on(self) -> dict[int, int]:
        """Source of the new code → source of the checkpoint."""
        return {
            at: int(text.removeprefix(GOES_ON))
            for at, text in self.given.items()
            if text.startswith(GOES_ON)
        }


def read_starts(pairs: Sequence[str], found: Drawing, held: Sequence[HeldSource]) -> SourceStarts:
    given: dict[int, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or not value:
            raise WrongUse(f"--start {pair}: no SOURCE=WHERE", do=_SPELLED)
        at = _source_named(name, found)
        if at in given:
            raise WrongUse(f"--start {name}: source {at} is given twice", do="Give it once.")
        given[at] = _goes_on(pair, value, held) if value.startswith(GOES_ON) else _content(value)
    return SourceStarts(given)


_SPELLED = (
    "Write --start SOURCE=WHERE: a source's number, name, topic or path; and earliest, latest, an "
    "offset as JSON, a file that holds one, or source:N to go on where source N of CP stood."
)


def _source_named(name: str, found: Drawing) -> int:
    sources = found.outline.sources
    if name.isdecimal() and int(name) < len(sources):
        return int(name)
    fitting = [at for at, one in enumerate(sources) if name in (one.name, one.place)]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(
        f"{at} ({one.kind} {one.name or one.place or ''})" for at, one in enumerate(sources)
    )
    what = "there are two such sources" if fitting else "the new code has no such source"
    raise WrongUse(f"--start {name}: {what}", f"Its sources are {there}.", _SPELLED)


def _goes_on(pair: str, value: str, held: Sequence[HeldSource]) -> str:
    wanted = value.removeprefix(GOES_ON)
    for old, one in enumerate(held):
        if one.position.id == wanted:
            return f"{GOES_ON}{old}"
    known = ", ".join(f"{one.position.id} ({one.words})" for one in held)
    raise WrongUse(
        f"--start {pair}: the checkpoint has no source {wanted}", f"It has {known}.", _SPELLED
    )


def _content(value: str) -> str:
    """A file's text in place of its name."""
    if value in ("earliest", "latest") or value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        json.loads(value)
    except ValueError:
        pass
    else:
        return value
    try:
        return Path(value).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRead(
            f"--start: {value} is neither earliest nor latest, nor JSON, nor a file: {error}",
            do=_SPELLED,
        ) from None


def told_sources(
    comparison: Comparison, starts: SourceStarts, accept: frozenset[str]
) -> Comparison:
    """The comparison with what the user says of sources; a place that was accepted is the same."""
    told = dict(starts.goes_on)
    doubled = {old for old in told.values() if list(told.values()).count(old) > 1}
    if doubled:
        raise WrongUse(
            f"--start: two sources go on from source {min(doubled)}",
            do="Give each source of the checkpoint to one source of the new code.",
        )
    found = replace(comparison, told_sources=told)
    if _PLACE_CHANGED in accept:
        same = {
            at: old
            for at, old in found.sources.replaced
            if at not in starts.given
            and family(found.held_sources[old].kind) == family(found.new.sources[at].kind)
        }
        found = replace(found, told_sources={**told, **same})
    return found


def settled(comparison: Comparison, starts: SourceStarts) -> Comparison:
    """Aligned, and without what the migration itself puts right: topics and places that went."""
    aligned = comparison.aligned
    last, latest = aligned.last, aligned.checkpoint.latest_batch
    if last is not None and last.sources:
        sources = tuple(
            aligned.new.sources[at] if at in starts.goes_on else one
            for at, one in enumerate(last.sources)
        )
        aligned = replace(aligned, last=replace(last, sources=sources))
    gone = topics_gone(comparison)
    entry = aligned.checkpoint.latest_entry
    if not gone or entry is None or latest is None:
        return aligned
    lines = []
    for at, (name, text) in enumerate(entry.offsets):
        if at in gone and text is not None:
            kept = {t: o for t, o in json.loads(text).items() if t not in gone[at]}
            text = json.dumps(kept, separators=(",", ":"))
        lines.append((name, text))
    offsets = {**aligned.checkpoint.offsets, latest: replace(entry, offsets=tuple(lines))}
    return replace(aligned, checkpoint=replace(aligned.checkpoint, offsets=offsets))


def topics_gone(comparison: Comparison) -> dict[int, frozenset[str]]:
    """Source of the new code → topics that the checkpoint has of it, and it reads no more."""
    found: dict[int, frozenset[str]] = {}
    for at, old in enumerate(comparison.sources.pairs):
        if old is None:
            continue
        held, now = comparison.held_sources[old], comparison.new.sources[at]
        subscribed = now.options.get("subscribe")
        if not about(held.position).has_topics or subscribed is None or not held.topics:
            continue
        gone = held.topics - {topic.strip() for topic in subscribed.split(",")}
        if gone and gone != held.topics:
            found[at] = frozenset(gone)
    return found


@dataclass(frozen=True)
class SourceRequest:
    """All that a change of sources is made of."""

    origin: Origin
    comparison: Comparison
    found: Drawing
    course: ResumePoint
    starts: SourceStarts
    accept: frozenset[str]


def source_change(asked: SourceRequest) -> SourceChange | None:
    """None where the new code has the old code's sources, in their places."""
    matching, gone = asked.comparison.sources, topics_gone(asked.comparison)
    _refuse_new_names(asked.comparison)
    _refuse_unclear(asked.comparison)
    _refuse_idle_start(matching, asked)
    if matching.is_same and not gone and not asked.starts.given:
        return None
    _refuse_twins(asked, matching)
    _refuse_in_flight(asked, matching, gone)
    _refuse_crossed_state(asked.comparison)
    _require_accepted(asked, matching, gone)
    ids = tuple(_new_id(asked, at) for at in range(len(matching.pairs)))
    sources: list[KeptSource | NewSource] = []
    for at, old in enumerate(matching.pairs):
        folder = asked.found.folders[at]
        if old is None:
            sources.append(begin(asked.found, at, ids[at], folder, asked.starts.given.get(at)))
            continue
        held = asked.comparison.held_sources[old]
        sources.append(
            KeptSource(
                ids[at],
                held.position.id,
                folder,
                _old_folder(asked.origin, held),
                gone.get(at, frozenset()),
            )
        )
    notes = (*_notes(asked, matching, sources), *_left(asked, matching, gone))
    options = {"start": {str(at): text for at, text in sorted(asked.starts.given.items())}}
    return SourceChange(tuple(sources), notes, options if asked.starts.given else {})


def _new_id(asked: SourceRequest, at: int) -> str:
    by_name = any(one.by_name for one in asked.comparison.held_sources)
    name = asked.comparison.new.sources[at].name
    if by_name and name is None:
        raise NotCarried(
            f"source {at} of the new code has no name, and the checkpoint knows sources by name",
            "Its offset log is of version 2, as Spark writes it with source evolution.",
            'Name the source: spark.readStream.name("orders")…',
        )
    return name if by_name and name is not None else str(at)


def _old_folder(origin: Origin, held: HeldSource) -> str:
    """A named source has a folder of its name, even where the offset log has none."""
    name = held.name
    if name is not None and any(path.startswith(f"{SOURCES}/{name}/") for path in origin.sizes):
        return name
    return held.position.id


def _refuse_new_names(comparison: Comparison) -> None:
    if comparison.names_are_new():
        named = [one.name for one in comparison.new.sources if one.name is not None]
        raise NotCarried(
            f"the new code names its sources ({', '.join(named)}), and the checkpoint knows them "
            "by place",
            "Names are a change of their own: of the offset log and of the sources' folders.",
            f"Name them first: {convert_command(comparison)}\nThen migrate what that makes.",
        )


def _refuse_unclear(comparison: Comparison) -> None:
    unclear = comparison.sources.unclear
    if unclear:
        raise NotCarried(
            "\n".join(unclear),
            "A source that took another's position would skip records, or read some twice.",
            "Say of each which one it is (--start NEW=source:OLD), or where it begins "
            "(--start NEW=earliest).",
        )


def _refuse_idle_start(matching: SourceMatching, asked: SourceRequest) -> None:
    for at in asked.starts.given:
        if matching.pairs[at] is not None and at not in asked.starts.goes_on:
            held = asked.comparison.held_sources[matching.pairs[at] or 0]
            raise WrongUse(
                f"--start {at}: source {at} is in the checkpoint ({held.words}), and goes on "
                "where it stands",
                "A start is for a source that is new.",
                "Leave it out; `floodmark rewind` goes back to an earlier place.",
            )


def _refuse_twins(asked: SourceRequest, matching: SourceMatching) -> None:
    """A stream that is read twice has two offsets and one folder: which one is not written down."""
    checkpoint = asked.origin.checkpoint
    twice = len(set(asked.found.folders)) < len(asked.found.folders)
    if not twice:
        twice = any(checkpoint.twin_of(one.id) is not None for one in checkpoint.sources)
    if twice and not (matching.is_same and not asked.starts.given):
        raise NotCarried(
            "the query reads one stream twice, and its sources have changed",
            "Both reads share one folder of the checkpoint, so the numbers of folders and of "
            "offsets differ.",
            "Read the stream a second time by a readStream of its own, before the change; or begin "
            "with an empty state: `floodmark upgrade CP NEW --without-state`.",
        )


def _refuse_in_flight(
    asked: SourceRequest, matching: SourceMatching, gone: Mapping[int, frozenset[str]]
) -> None:
    """Run again without a source, the batch would be another one under the same number."""
    course, checkpoint = asked.course, asked.origin.checkpoint
    if course.in_flight is None or course.after is None:
        return
    before, planned = checkpoint.offsets[course.after], checkpoint.offsets[course.in_flight]
    leaving = [asked.comparison.held_sources[old] for old in matching.removed]
    leaving += [asked.comparison.held_sources[matching.pairs[at] or 0] for at in gone]
    for held in leaving:
        if before.of(held.position.id) != planned.of(held.position.id):
            raise NotCarried(
                f"batch {course.in_flight} is in flight, and reads source {held.position.id} "
                f"({held.words}), which the new code does not have",
                "Run again without it, the batch would lack those records; a sink that has the "
                "batch would keep them, and the state would not.",
                "Let the old code finish the batch first, or go back to the last commit: "
                "--drop-in-flight.",
            )


def _refuse_crossed_state(comparison: Comparison) -> None:
    """Operators are matched by their order; each must still be fed by the sources it was."""
    last, matching = comparison.last, comparison.sources
    if matching.is_same or not comparison.held:
        return
    kinds = [one.name for one in comparison.held]
    if last is None or last.tree is None:
        if len(set(kinds)) < len(kinds):
            raise NotCarried(
                "sources have changed, and two operators of one kind keep state",
                "Without the old code nobody can tell which of them was fed by which source.",
                "Give the code that made the checkpoint: --old OLD.py.",
            )
        return
    numbers = comparison.kept_numbers
    left = list(last.tree.stateful)
    for step in comparison.new.tree.stateful:
        was = next((one for one in left if one.kind == step.kind), None)
        if was is None:
            continue
        left.remove(was)
        before = {numbers[one] for one in sources_of(was) if one in numbers}
        after = {one for one in sources_of(step) if matching.pairs[one] is not None}
        if before != after:
            raise NotCarried(
                f"{step.kind} that was fed by {_listed(before)} would get the state of one that is "
                f"fed by {_listed(after)}",
                "Operators of one kind are matched by their order in the plan, which follows that "
                "of the sources.",
                "Put new sources behind the old ones: old.union(new).",
            )


def _listed(sources: set[int]) -> str:
    return ", ".join(f"source {one}" for one in sorted(sources)) or "no source that stays"


def _require_accepted(
    asked: SourceRequest, matching: SourceMatching, gone: Mapping[int, frozenset[str]]
) -> None:
    if not (matching.removed or gone) or DROPPED_SOURCE in asked.accept:
        return
    raise NotCarried(
        " ".join(_left(asked, matching, gone)),
        "Its records that were not read yet are not read by this stream any more.",
        f"If that is meant: --accept {DROPPED_SOURCE}.",
    )


def _left(
    asked: SourceRequest, matching: SourceMatching, gone: Mapping[int, frozenset[str]]
) -> Iterator[str]:
    """What goes, and what of it was not read yet."""
    for old in matching.removed:
        held = asked.comparison.held_sources[old]
        position = _stands(asked, held)
        said = unread(asked.origin, asked.found, replace(held, position=position), None)
        yield f"Source {held.position.id} ({held.words}) is dropped: {said}."
    for at, topics in gone.items():
        held = asked.comparison.held_sources[matching.pairs[at] or 0]
        position = _stands(asked, held)
        said = unread(asked.origin, asked.found, replace(held, position=position), topics)
        yield f"Source {at} reads {', '.join(sorted(topics))} no more: {said}."


def _stands(asked: SourceRequest, held: HeldSource) -> Any:
    """Where the source stands when the new checkpoint goes on."""
    batch = asked.course.after if asked.course.in_flight is None else asked.course.in_flight
    assert batch is not None
    found = asked.origin.checkpoint.sources_of(batch)
    return next((one for one in found if one.id == held.position.id), held.position)


def _notes(
    asked: SourceRequest, matching: SourceMatching, sources: Sequence[KeptSource | NewSource]
) -> Iterator[str]:
    outlines = asked.comparison.new.sources
    for at, one in enumerate(sources):
        if isinstance(one, NewSource):
            yield f"Source {at} ({source_words(outlines[at])}) is new: {one.begins}"
    for at, old in enumerate(matching.pairs):
        if old is not None and asked.comparison.held_sources[old].position.id != sources[at].id:
            held = asked.comparison.held_sources[old]
            yield f"Source {at} ({held.words}) was source {held.position.id}: it goes on there."
    if not matching.added:
        return
    if asked.course.in_flight is not None:
        yield (
            f"Batch {asked.course.in_flight} is run again over the ranges of the sources that "
            "stay; a new source has no part in it, and begins with the batch after it."
        )
    watermark = asked.origin.checkpoint.watermark_ms
    if watermark and asked.comparison.held and asked.comparison.new.tree.watermarks:
        from datetime import datetime, timezone

        at_time = datetime.fromtimestamp(watermark / 1000, timezone.utc).isoformat(" ")
        yield (
            f"The watermark stands at {at_time}: older rows of a new source are late, and "
            "operators with event time drop them."
        )
