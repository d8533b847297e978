"""Finds the new code's sources, the positions of new ones, and the unread input of dropped ones.

The module asks the real sources where only they know: a topic's end, a table's newest version,
the files of a folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from floodmark.changes.carry.changed_sources import KeptSource, NewSource, SourceChange
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.resume_point import ResumePoint
from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.registry import about, family
from floodmark.engine.code.drawing import Drawing
from floodmark.engine.state.source_starts import begin
from floodmark.engine.state.start_option import SourceStarts
from floodmark.engine.state.unread_input import unread
from floodmark.errors import NotCarried, WrongUse
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.kept_branches import sources_of
from floodmark.rules.restarts.source_lists import other_list
from floodmark.rules.restarts.source_matching import (
    HeldSource,
    SourceMatching,
    source_words,
)
from floodmark.rules.restarts.source_moves import DROPPED_SOURCE, convert_command

_PLACE_CHANGED = "source-place-changed"


def told_sources(
    comparison: Comparison, starts: SourceStarts, accept: frozenset[str]
) -> Comparison:
    """Add what the user says about sources; an accepted change of place counts as no change."""
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
    """Align the comparison, and remove what the migration resolves: changed places, gone topics."""
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
    """Return, by source of the new code, the checkpoint's topics that it no longer reads."""
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
    """Holds everything that decides a change of sources."""

    origin: Origin
    comparison: Comparison
    found: Drawing
    course: ResumePoint
    starts: SourceStarts
    accept: frozenset[str]


def source_change(asked: SourceRequest) -> SourceChange | None:
    """Return the change; None where the new code has the old sources in their places."""
    matching, gone = asked.comparison.sources, topics_gone(asked.comparison)
    _refuse_new_names(asked.comparison)
    _refuse_unclear(asked.comparison)
    _refuse_idle_start(matching, asked)
    _refuse_other_lists(asked, matching)
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
            f"source {at} of the new code has no name, but the checkpoint knows sources by name",
            "Its offset log has version 2, as Spark writes it with source evolution.",
            'Name the source: spark.readStream.name("orders")…',
        )
    return name if by_name and name is not None else str(at)


def _old_folder(origin: Origin, held: HeldSource) -> str:
    """Return a source's folder: a named source has one with its name, whatever the log has."""
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
            "Giving names is a separate change of the offset log and of the sources' folders.",
            f"Name them first: {convert_command(comparison)}\nThen migrate the new checkpoint.",
        )


def _refuse_unclear(comparison: Comparison) -> None:
    unclear = comparison.sources.unclear
    if unclear:
        raise NotCarried(
            "\n".join(unclear),
            "A source with another source's position would skip records, or read some twice.",
            "Say for each one which old source it is (--start NEW=source:OLD), or where it begins "
            "(--start NEW=earliest).",
        )


def _refuse_idle_start(matching: SourceMatching, asked: SourceRequest) -> None:
    for at in asked.starts.given:
        if matching.pairs[at] is not None and at not in asked.starts.goes_on:
            held = asked.comparison.held_sources[matching.pairs[at] or 0]
            raise WrongUse(
                f"--start {at}: source {at} is in the checkpoint ({held.words}), and goes on "
                "from its position",
                "--start is only for new sources.",
                "Leave it out; `floodmark rewind` goes back to an earlier position.",
            )


def _refuse_twins(asked: SourceRequest, matching: SourceMatching) -> None:
    """Refuse a stream that is read twice: it has two offsets but one folder, unlike the others."""
    checkpoint = asked.origin.checkpoint
    twice = len(set(asked.found.folders)) < len(asked.found.folders)
    if not twice:
        twice = any(checkpoint.twin_of(one.id) is not None for one in checkpoint.sources)
    if twice and not (matching.is_same and not asked.starts.given):
        raise NotCarried(
            "the query reads one stream twice, and its sources have changed",
            "Both reads share one folder of the checkpoint, so the numbers of folders and of "
            "offsets differ.",
            "Leave the sources as they were, and change only the rest. Or begin with a new "
            "checkpoint.",
        )


def _refuse_other_lists(asked: SourceRequest, matching: SourceMatching) -> None:
    """Refuse as many sources as before with another number of DataFrames behind them."""
    if not matching.is_same:
        return
    kinds = [one.kind for one in asked.found.outline.sources]
    found = other_list(asked.origin.checkpoint, kinds, asked.found.folders)
    if found is not None:
        at, why = found
        raise NotCarried(
            f"source {at} is read through another number of DataFrames than before: {why}",
            "Spark keeps one list of seen files for each DataFrame of a query, however often it "
            "uses it.",
            "Read the folder through as many DataFrames as before: one that was used twice in a "
            "union or a join stays one.",
        )


def _refuse_in_flight(
    asked: SourceRequest, matching: SourceMatching, gone: Mapping[int, frozenset[str]]
) -> None:
    """Refuse a batch in flight that reads a dropped source: it would run again with other input."""
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
                "If the batch runs again without that source, it lacks those records. A sink that "
                "already has the batch would keep them, but the state would not have them.",
                "Let the old code finish the batch first, or go back to the last commit: "
                "--drop-in-flight.",
            )


def _refuse_crossed_state(comparison: Comparison) -> None:
    """Refuse where an operator, matched by its order, would get other sources than before."""
    last, matching = comparison.last, comparison.sources
    if matching.is_same or not comparison.held:
        return
    kinds = [one.name for one in comparison.held]
    if last is None or last.tree is None:
        if len(set(kinds)) < len(kinds):
            raise NotCarried(
                "sources have changed, and two operators of the same kind keep state",
                "Without the old code, Floodmark cannot tell which source fed which operator.",
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
                f"{step.kind} that read {_listed(before)} would get the state of one that "
                f"reads {_listed(after)}",
                "Operators of the same kind are matched by their order in the plan, which follows "
                "the order of the sources.",
                "Put new sources after the old ones: old.union(new).",
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
        "This stream will never read the records of it that are still unread.",
        f"If this is what you want: --accept {DROPPED_SOURCE}.",
    )


def _left(
    asked: SourceRequest, matching: SourceMatching, gone: Mapping[int, frozenset[str]]
) -> Iterator[str]:
    """Yield what is dropped, and what of it is still unread."""
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
    """Return the source's position from which the new checkpoint goes on."""
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
            yield f"Source {at} ({held.words}) was source {held.position.id}, and goes on there."
    if not matching.added:
        return
    if asked.course.in_flight is not None:
        yield (
            f"Batch {asked.course.in_flight} runs again with the ranges of the sources that "
            "stay; a new source begins with the batch after it."
        )
    watermark = asked.origin.checkpoint.watermark_ms
    if watermark and asked.comparison.held and asked.comparison.new.tree.watermarks:
        from datetime import datetime, timezone

        at_time = datetime.fromtimestamp(watermark / 1000, timezone.utc).isoformat(" ")
        yield (
            f"The watermark is at {at_time}: older rows of a new source are late, and "
            "operators with event time drop them."
        )
