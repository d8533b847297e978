"""Finds more or fewer sources than the checkpoint has offsets for."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OFFSETS, SOURCES
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_changes import (
    added_words,
    migrate_options,
    removed_words,
    what_to_do,
)

RULE = Rule(
    "FM301",
    "source-count-changed",
    Severity.ERROR,
    finds="Another number of streaming sources than the newest offset entry has.",
    matters="Spark knows a source by its place in the plan, and its offsets by the same place.",
    restart="It fails: 'There are [1] sources in the checkpoint offsets and now there are "
    "[2] sources requested by the query'.",
    instead="`floodmark migrate` carries the state over: sources that stay go on where they "
    "stand, a new one begins where --start says, one that is gone is dropped.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    where = f"{OFFSETS}/{comparison.checkpoint.latest_batch}"
    if comparison.named_sources():
        yield from _named(comparison, where)
        return
    if comparison.names_are_new():
        return  # source-names-unknown tells: with names, sources come and go freely
    matching = comparison.sources
    before, after = len(comparison.checkpoint.sources), len(comparison.new.sources)
    for said in matching.unclear:
        yield reason(
            RULE,
            Verdict.NEEDS_MIGRATION,
            said,
            where,
            do=what_to_do(comparison),
            migrate=migrate_options(comparison),
            silent=before == after,
        )
    if before == after:
        return
    for at, said in (*added_words(comparison), *removed_words(comparison)):
        yield reason(
            RULE,
            Verdict.NEEDS_MIGRATION,
            said,
            f"{SOURCES}/{at}",
            do=what_to_do(comparison),
            migrate=migrate_options(comparison),
        )


def _named(comparison: Comparison, where: str) -> Iterator[Reason]:
    known = {source.id for source in comparison.checkpoint.sources}
    asked = [one.name or str(at) for at, one in enumerate(comparison.new.sources)]
    gone = sorted(known - set(asked))
    if gone:
        yield reason(
            RULE,
            Verdict.UNKNOWN,
            f"The checkpoint has offsets of {', '.join(gone)}, which the new code does not read.",
            where,
            why="Spark drops them without a warning; read again later, such a source starts over.",
            do="Nothing, if it is meant to go. Otherwise give the source the name it had.",
            silent=True,
        )
    for name in asked:
        if name not in known:
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"Source {name} is new to the checkpoint.",
                where,
                why="With an offset log of version 2 it begins at its initial position.",
                do="Nothing.",
            )
