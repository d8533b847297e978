"""Another option of a source."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import (
    FILE_SOURCES,
    Comparison,
    change_words,
    option_changes,
)
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM306",
    "source-options-changed",
    Severity.ADVICE,
    finds="An option of a source that is neither its place nor a rate limit, not as at "
    "the last start.",
    matters="Options of where to begin count for a new query alone; others change how "
    "records are read.",
    restart="It starts. startingOffsets, startingVersion and their like are ignored: the "
    "checkpoint says where to go on.",
    instead="Nothing. To begin elsewhere use `floodmark rewind` or `floodmark upgrade`.",
)


_PLACES = frozenset({"subscribe", "subscribepattern", "assign", "path", "table"})
_LIMITS = ("max", "min", "rowspersecond", "numpartitions", "rampuptime", "latestfirst")


def check(comparison: Comparison) -> Iterator[Reason]:
    last = comparison.last
    if last is None or len(last.sources) != len(comparison.new.sources):
        return
    pairs = zip(last.sources, comparison.new.sources, strict=True)
    for at, (before, after) in enumerate(pairs):
        if before.kind != after.kind:
            if {before.kind, after.kind} <= FILE_SOURCES:
                yield reason(
                    RULE,
                    Verdict.COMPATIBLE,
                    f"Source {at} is read as {after.kind}, and was read as {before.kind}.",
                    f"sources/{at}",
                    do="Nothing, if the files that are still to come are of that format.",
                )
            continue
        for key, old, now in option_changes(before.options, after.options):
            if key in _PLACES or key.startswith(_LIMITS):
                continue
            ignored = "; it is ignored" if key.startswith(("starting", "ending")) else ""
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"Source {at}: {change_words(key, old, now)}{ignored}.",
                f"sources/{at}",
            )
