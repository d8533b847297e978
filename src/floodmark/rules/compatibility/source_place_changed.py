"""Finds a source that reads from somewhere else."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.outline import SourceOutline
from floodmark.connectors.registry import about, kind_named
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, reads, refuses_other_files
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM304",
    "source-place-changed",
    Severity.WARNING,
    finds="Other topics, another path or another table than at the last start.",
    matters="The checkpoint tells what was read of the old place, and nothing of the new one.",
    restart="Kafka: topics that are gone fail the query while failOnDataLoss is true, and are "
    "dropped without a warning otherwise; topics that come are read from their beginning. Files: "
    "another folder fails with 'Wrong basePath', another glob is read in full. Another Delta "
    "table fails.",
    instead="If it is the same data in a new place, `floodmark upgrade --map-topic OLD=NEW` "
    "(Kafka) carries the position over.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    new = comparison.new.sources
    held = comparison.checkpoint.sources
    last = comparison.last.sources if comparison.last is not None else ()
    if len(held) != len(new) or _moved_about(last, new):
        return
    for at, now in enumerate(new):
        if about(held[at]).has_topics and now.kind == held[at].kind:
            yield from _topics(at, held[at].offset, now)
        elif not last and _reads_elsewhere(comparison, at, now):
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT,
                f"Source {at} ({now.kind}) reads {now.place}; the checkpoint has read "
                f"{comparison.seen[at]}, which is not there.",
                f"{SOURCES}/{at}",
                do="Go back to the old place, or begin with a new checkpoint in the new one.",
                silent=not refuses_other_files(now, None),
            )
        elif len(last) == len(new) and last[at].kind == now.kind and last[at].place != now.place:
            yield from _elsewhere(at, last[at], now)


def _reads_elsewhere(comparison: Comparison, at: int, now: SourceOutline) -> bool:
    """Without a note, the list of files that were read still tells the folder."""
    file = comparison.seen.get(at)
    return file is not None and reads(now, file) is False


def _elsewhere(at: int, before: SourceOutline, now: SourceOutline) -> Iterator[Reason]:
    refused = refuses_other_files(now, before)
    yield reason(
        RULE,
        Verdict.NEEDS_NEW_CHECKPOINT if refused else Verdict.UNKNOWN,
        f"Source {at} ({now.kind}) reads {now.place}; at the last start it was {before.place}.",
        f"{SOURCES}/{at}",
        do="Go back to the old place, or begin with a new checkpoint in the new one."
        if refused
        else "Make sure that the new place holds nothing that was read already, or go back to the "
        "old one.",
        silent=not refused and not kind_named(now.kind).names_table,
    )


def _moved_about(last: tuple[SourceOutline, ...], new: tuple[SourceOutline, ...]) -> bool:
    """Then they are reordered, and no place is new."""
    places = [str(one.place) for one in last]
    return sorted(places) == sorted(str(one.place) for one in new) and len(places) > 1


def _topics(at: int, offset: object, now: SourceOutline) -> Iterator[Reason]:
    asked = now.options.get("subscribe")
    if asked is None or not isinstance(offset, dict):
        return  # a pattern or an assignment is Kafka's to answer
    topics = {topic.strip() for topic in asked.split(",")}
    gone, come = sorted(set(offset) - topics), sorted(topics - set(offset))
    if gone:
        silent = now.options.get("failondataloss", "true").lower() == "false"
        yield reason(
            RULE,
            Verdict.NEEDS_NEW_CHECKPOINT,
            f"Source {at} reads {asked}; the checkpoint stands in {', '.join(gone)}.",
            f"{SOURCES}/{at}",
            silent=silent,
        )
    elif come:
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"Source {at} reads {', '.join(come)} as well, from the beginning.",
            f"{SOURCES}/{at}",
            do="Nothing, if all of it is wanted.",
        )
