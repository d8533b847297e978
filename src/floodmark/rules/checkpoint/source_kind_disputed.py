"""Finds a source whose offset contradicts the note of the last start."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM163",
    "source-kind-disputed",
    Severity.WARNING,
    finds="A source whose offset has the form of Kafka and of Event Hubs, while the note of the "
    "last start says a kind that cannot have written it. Or an offset with spaces, as "
    "sources written in Python write it, while sources/<id>/0 begins as Kafka's.",
    matters="The kind decides how floodmark reads the offset, which option starts a new stream "
    "there, and whom to ask what still exists. Other code may have been started on this "
    "checkpoint.",
    restart="Nothing changes. Spark gives the offset to whatever source the code has in this "
    "place; a source of another kind fails to parse it or misreads it.",
    instead="Give its kind to the verbs that accept the option: `floodmark offsets CP "
    "--source-kind 0=eventhubs`.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for source, why in evidence.checkpoint.disputed.items():
        yield RULE.finding(
            f"{SOURCES}/{source}", f"The kind of source {source} is not clear. {why}"
        )
