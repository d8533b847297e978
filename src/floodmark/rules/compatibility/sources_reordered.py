"""Finds the same sources in another order."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.outline import SourceOutline
from floodmark.connectors.registry import family, kind_named
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, refuses_other_files
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.source_matching import source_words
from floodmark.rules.restarts.source_moves import migrate_options

RULE = Rule(
    "FM303",
    "sources-reordered",
    Severity.ERROR,
    finds="Sources of one kind that have changed places.",
    matters="Spark knows sources by their place in the plan. Each would go on from the "
    "other's offsets.",
    restart="Two folders fail with 'Wrong basePath' if the last batch had files, Kafka on "
    "partitions that are gone. After a batch without files, with globs, and with Kafka's "
    "failOnDataLoss=false it starts without a warning: records are skipped and repeated.",
    instead="Put the sources back into their order: union, join and select them as before. "
    "`floodmark migrate` gives each its own offsets in the new order. Spark 4.3 knows sources by "
    "name, after `floodmark convert --name`: then their order is free.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    held, new = comparison.held_sources, comparison.new.sources
    if comparison.named_sources() or comparison.names_are_new() or len(held) != len(new):
        return
    for at, old in comparison.sources.moved:
        yield reason(
            RULE,
            Verdict.NEEDS_MIGRATION,
            f"Source {at} reads {source_words(new[at])} in the new code; in the checkpoint that is "
            f"source {old}.",
            f"{SOURCES}/{at}",
            why=_restart(new[at], _is_silent(comparison, at)),
            do="Put the sources back into their order, or let `floodmark migrate` give each its "
            "own offsets.",
            migrate=migrate_options(comparison),
            silent=_is_silent(comparison, at),
        )


def _restart(now: SourceOutline, silent: bool) -> str:
    """Return what Spark does at the start with this kind of source."""
    known = kind_named(family(now.kind))
    skipped = "records are skipped and others repeated"
    if silent:
        return f"The query starts without a warning, from the other source's offset: {skipped}."
    if known.has_topics:
        return (
            "The query fails: partitions of the other topic are gone for it, as failOnDataLoss "
            "is true."
        )
    if known.lists_files:
        return (
            "The query fails with 'Wrong basePath' if the last batch had files; otherwise it "
            f"starts without a warning, and {skipped}."
        )
    if known.names_table:
        return "The query fails: the checkpoint's offset names the id of another table."
    return "Each source finds the other's offset. Whether the query starts depends on the sources."


def _is_silent(comparison: Comparison, at: int) -> bool:
    """Whether the source reads the other's offset without a warning."""
    now = comparison.new.sources[at]
    noted = comparison.last.sources if comparison.last is not None else ()
    before = noted[at] if len(noted) > at else None
    if kind_named(now.kind).has_topics:
        return now.options.get("failondataloss", "true").lower() == "false"
    if before is not None and before.kind != now.kind:
        return False
    return not refuses_other_files(now, before)
