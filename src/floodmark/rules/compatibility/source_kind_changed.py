"""Finds another kind of source in a source's place."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.registry import family
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_changes import migrate_options, what_to_do

RULE = Rule(
    "FM302",
    "source-kind-changed",
    Severity.ERROR,
    finds="A source whose offsets in the checkpoint are of another kind than the new code reads.",
    matters="Only the source that wrote an offset can read it.",
    restart="The new source fails to parse the offset, or misreads it where the shapes agree.",
    instead="`floodmark migrate` drops the old source and lets the new one begin where --start "
    "says; state and the other sources go on.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if comparison.named_sources():
        return
    for at, old in comparison.sources.replaced:
        held, now = comparison.held_sources[old], comparison.new.sources[at]
        if family(held.kind) != family(now.kind):
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"Source {at} is {now.kind} in the new code; the checkpoint's offset is "
                f"{held.kind}'s.",
                f"{SOURCES}/{held.position.id}",
                do=what_to_do(comparison),
                migrate=migrate_options(comparison),
            )
