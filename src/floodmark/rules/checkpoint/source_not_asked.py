"""Finds a source that could not be asked."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM149",
    "source-not-asked",
    Severity.ADVICE,
    finds="With --sources: a source whose location is not known, or that does not answer.",
    matters="A checkpoint holds offsets, but not the address of their source. floodmark's notes of "
    "the last start have it, if floodmark started the query.",
    restart="Unknown: the source was not compared.",
    instead="Give the location: --bootstrap-servers HOST:PORT, --table PATH, --sink PATH.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    if evidence.outside is None:
        return
    for source, why in evidence.outside.silent.items():
        yield RULE.finding(
            f"{SOURCES}/{source}",
            f"Source {source} was not asked: {why}.",
            do=evidence.outside.remedies.get(source),
        )
