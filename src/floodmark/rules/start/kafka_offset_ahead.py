"""Finds a Kafka partition that ends before the checkpoint's offset."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.kafka.reach import KafkaTrouble
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation
from floodmark.rules.start_inputs.topic import troubles

RULE = Rule(
    "FM407",
    "kafka-offset-ahead",
    Severity.ERROR,
    finds="Offsets of the checkpoint that lie after the latest that Kafka has.",
    matters="The topic was deleted and recreated, or this is another cluster.",
    restart="Spark fails on its first batch; if failOnDataLoss is false, it reads other records "
    "instead of those that the offsets mean.",
    instead="Point the source at the cluster that the checkpoint was made with, or begin with a "
    "new checkpoint.",
)


def check(situation: Situation) -> Iterator[Finding]:
    for _, found in troubles(situation, KafkaTrouble.AHEAD):
        yield RULE.finding(
            situation.location,
            f"the checkpoint is at offset {found.offset} of {found.topic}, partition "
            f"{found.partition}, but Kafka's latest is {found.end}",
        )
