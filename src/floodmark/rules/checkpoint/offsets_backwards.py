"""A source that goes back from one batch to the next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.sources.kinds import SourceKind
from floodmark.checkpoint.sources.offset import SourceOffset
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM131",
    "offsets-backwards",
    Severity.ERROR,
    finds="A batch that ends before the batch before it ended, in one of its sources.",
    matters="Offsets only grow. A Kafka topic that was deleted and made anew, a restored table, "
    "an edited entry or a second query make them shrink.",
    restart="Kafka: with failOnDataLoss the query fails, without it records are skipped or read "
    "again. Delta fails ('Found invalid offsets').",
    instead="If the source was made anew, go on with a new checkpoint: `floodmark upgrade`. If "
    "the entry was edited, restore it.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    entries = sorted(evidence.positions.items())
    for (before, old), (batch, new) in pairwise(entries):
        earlier = {source.id: source for source in old}
        for source in new:
            last = earlier.get(source.id)
            if last is None or last.kind is not source.kind or last.text == source.text:
                continue
            for what, was, now in _steps(last, source):
                if now < was:
                    yield RULE.finding(
                        f"offsets/{batch}",
                        f"Source {source.id}{what}: batch {batch} ends at {_words(now)}, "
                        f"and batch {before} had ended at {_words(was)}.",
                    )


def _words(place: Any) -> str:
    if isinstance(place, tuple):
        return f"version {place[0]}, index {place[1]}"
    return str(place)


def _steps(old: SourceOffset, new: SourceOffset) -> Iterator[tuple[str, Any, Any]]:
    """(which part of the source, where it was, where it is), for what has an order."""
    was, now = old.offset, new.offset
    if type(was) is int and type(now) is int:
        yield "", was, now
    elif not (isinstance(was, dict) and isinstance(now, dict)):
        return
    elif new.kind in (SourceKind.KAFKA, SourceKind.EVENTHUBS):
        for topic in was.keys() & now.keys():
            for partition in sorted(was[topic].keys() & now[topic].keys(), key=int):
                places = was[topic][partition], now[topic][partition]
                yield f", {topic} partition {partition}", *places
    elif new.kind is SourceKind.DELTA:
        if was.get("reservoirId") == now.get("reservoirId"):
            places = _delta(was), _delta(now)
            if None not in places:
                yield "", *places
    elif new.kind is SourceKind.FILE and {type(was["logOffset"]), type(now["logOffset"])} == {int}:
        yield "", was["logOffset"], now["logOffset"]


def _delta(offset: dict[str, Any]) -> tuple[int, int] | None:
    place = offset.get("reservoirVersion"), offset.get("index")
    if type(place[0]) is not int or type(place[1]) is not int:
        return None
    # Later releases hold -100 for what is written as -1: both are a version's beginning.
    return place[0], max(place[1], -1) if place[1] in (-1, -100) else place[1]
