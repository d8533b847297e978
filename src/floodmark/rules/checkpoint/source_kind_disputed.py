"""Finds a source of which the note of the last start and the offset say different things."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM163",
    "source-kind-disputed",
    Severity.WARNING,
    finds="A source whose offset has the form of Kafka and of Event Hubs, where the note of the "
    "last start says a kind that cannot have written it; or with spaces, as sources written in "
    "Python put them, beside a start as Kafka writes it.",
    matters="The offset is read by the kind: which option begins a new stream there, and whom to "
    "ask what is still there. Other code may have been started on this checkpoint.",
    restart="Nothing changes: Spark gives the offset to whatever source the code has in its place, "
    "which fails to parse it or misreads it.",
    instead="Name its kind to the verbs that take it: "
    "`floodmark offsets CP --source-kind 0=eventhubs`.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for source, why in evidence.checkpoint.disputed.items():
        yield RULE.finding(
            f"{SOURCES}/{source}", f"Nothing tells which kind source {source} is. {why}"
        )
