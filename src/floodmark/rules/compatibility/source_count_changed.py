"""Finds more or fewer sources than the checkpoint has offsets for."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OFFSETS, SOURCES
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_lists import other_list
from floodmark.rules.restarts.source_moves import (
    added_words,
    migrate_options,
    removed_words,
    what_to_do,
)

RULE = Rule(
    "FM301",
    "source-count-changed",
    Severity.ERROR,
    finds="Another number of streaming sources than the newest offset entry has, or a source of "
    "files that is read through another number of DataFrames.",
    matters="Spark knows a source by its place in the plan, and its offsets by the same place.",
    restart="The query fails: 'There are [1] sources in the checkpoint offsets and now there are "
    "[2] sources requested by the query'. With two DataFrames of one folder in place of one that "
    "was used twice: 'batch 0 doesn't exist', or files are read again.",
    instead="A folder that was read through one DataFrame, used twice, stays so: Spark keeps one "
    "list of seen files for each. Otherwise `floodmark migrate` carries the state over: sources "
    "that stay go on where they stand, a new one begins where --start says, one that is gone is "
    "dropped.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    where = f"{OFFSETS}/{comparison.checkpoint.latest_batch}"
    if comparison.named_sources():
        yield from _named(comparison, where)
        return
    if comparison.names_are_new():
        return  # source-names-unknown reports it: with names, sources may be added and removed
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
        yield from _other_lists(comparison)
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


def _other_lists(comparison: Comparison) -> Iterator[Reason]:
    """Find an unchanged number of offsets that other DataFrames stand behind."""
    if not comparison.sources.is_same:
        return
    kinds = [one.kind for one in comparison.new.sources]
    found = other_list(comparison.checkpoint, kinds, comparison.folders)
    if found is None:
        return
    at, why = found
    yield reason(
        RULE,
        Verdict.NEEDS_NEW_CHECKPOINT,
        f"Source {at} is read through another number of DataFrames than before: {why}.",
        f"{SOURCES}/{at}",
        why="Spark keeps one list of seen files for each DataFrame of a query, however often it "
        "uses it. With another list the query fails ('batch 0 doesn't exist'), or reads files "
        "again.",
        do="Read the folder through as many DataFrames as before: one that was used twice in a "
        "union or a join stays one. Otherwise begin with a new checkpoint.",
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
            why="Spark drops them without a warning. If the code reads such a source again "
            "later, it starts over.",
            do="Nothing, if you removed the source on purpose. Otherwise give it its old name.",
            silent=True,
        )
    for name in asked:
        if name not in known:
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"Source {name} is new to the checkpoint.",
                where,
                why="With an offset log of version 2 the source begins at its initial position.",
                do="Nothing.",
            )
