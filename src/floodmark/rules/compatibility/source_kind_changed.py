"""Finds a source of another kind in the place of a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.registry import family
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_moves import migrate_options, what_to_do

RULE = Rule(
    "FM302",
    "source-kind-changed",
    Severity.ERROR,
    finds="A source whose offsets in the checkpoint are of another kind than the new code reads.",
    matters="Only the source that wrote an offset can read it.",
    restart="The new source fails to parse the offset, or misreads it if the forms are alike. A "
    "source name (Spark 4.3) does not help: Spark stores no kind with it, and gives the "
    "offset to whatever source has the name now. Tried with 4.3 between files, rate and "
    "rate-micro-batch, and from files to a socket: each failed on the other's offset or on "
    "its files.",
    instead="`floodmark migrate` drops the old source and lets the new one begin where --start "
    "says; state and the other sources go on.",
)

_NEW_NAME = (
    "A source of another kind is another source: give it a name that the checkpoint does not know, "
    "and it begins as its code says."
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for at, old in _in_one_place(comparison):
        held, now = comparison.held_sources[old], comparison.new.sources[at]
        if family(held.kind) != family(now.kind):
            name = f"Source {at}" if now.name is None else f"Source {now.name}"
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"{name} is {now.kind} in the new code; the checkpoint's offset is {held.kind}'s.",
                f"{SOURCES}/{held.position.id}",
                do=f"{'' if now.name is None else _NEW_NAME} {what_to_do(comparison)}".lstrip(),
                migrate=migrate_options(comparison),
            )


def _in_one_place(comparison: Comparison) -> Iterator[tuple[int, int]]:
    """Yield (new place, old place); a name is a place of its own, wherever it is in the plan."""
    if not comparison.named_sources():
        yield from comparison.sources.replaced
        return
    held, new = comparison.held_sources, comparison.new.sources
    gone = {held[old].name: old for old in comparison.sources.removed}
    for at in comparison.sources.added:
        if new[at].name in gone:
            yield at, gone[new[at].name]
