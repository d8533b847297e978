"""Finds a Hudi table whose timeline no longer has the commit in which the stream stands."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.connectors.hudi.offset import instant_of
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM162",
    "hudi-instant-gone",
    Severity.WARNING,
    finds="With --sources: a Hudi table whose active timeline begins after the commit in which the "
    "stream stands, or ends before it.",
    matters="Commits are archived, and their files cleaned, after some time "
    "(hoodie.keep.min.commits, hoodie.cleaner.commits.retained); a table that ends before "
    "the stream's commit was restored or created again.",
    restart="Nobody has tried this with Hudi itself. An incremental read from an archived commit "
    "may fail, or leave out cleaned files. A read from a future commit returns nothing "
    "until that commit exists.",
    instead="Compare what the stream has written with the table. To begin again, use a new "
    "checkpoint.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for entry, source, outside in evidence.asked_sources:
        table = outside.timelines.get(source.id)
        stands = instant_of(source.offset)
        # Zeros: it has read nothing yet.
        if table is None or stands is None or not stands.strip("0").isdecimal():
            continue
        if table.oldest is None or table.newest is None:
            found = "has no completed commit"
        elif stands < table.oldest:
            found = f"begins at {table.oldest}: commits between them are archived"
        elif stands > table.newest:
            found = f"ends at {table.newest}"
        else:
            continue
        yield RULE.finding(
            entry,
            f"Source {source.id} stands at commit {stands}, but the timeline of {table.place} "
            f"{found}.",
        )
