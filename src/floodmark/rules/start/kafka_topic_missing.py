"""Finds a topic, or a partition of it, that the Kafka cluster does not have."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.kafka.offset import SERVERS
from floodmark.connectors.kafka.reach import KafkaTrouble, shortfalls
from floodmark.connectors.kafka.subscription import subscribed_topics
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation
from floodmark.rules.start_inputs.topic import needed_topics

RULE = Rule(
    "FM405",
    "kafka-topic-missing",
    Severity.ERROR,
    finds="A Kafka source that reads a topic or a partition which the cluster does not have.",
    matters="The topic was deleted, its name is misspelt, or this is another cluster.",
    restart="Spark waits or fails without saying so; with failOnDataLoss=false it continues "
    "without the topic's records.",
    instead="Create the topic, correct the name, or point the source at the cluster that has it.",
)


def check(situation: Situation) -> Iterator[Finding]:
    for source in situation.of_kind("kafka"):
        bounds = situation.outside.kafka.get(source.id)
        if bounds is None:
            continue
        needed = needed_topics(source)
        servers = source.options.get(SERVERS, "")
        for topic in sorted({*subscribed_topics(source.options), *needed} - set(bounds)):
            goes_on = topic in needed
            yield RULE.finding(
                situation.location,
                f"Kafka at {servers} has no topic {topic!r}",
                why="The checkpoint goes on in this topic: the topic was deleted, or this is "
                "another cluster."
                if goes_on
                else "Spark would wait or fail without saying so.",
                do="Point the source at the cluster that has it."
                if goes_on
                else "Create it first, or correct the name.",
            )
        for found in shortfalls(needed, bounds):
            if found.trouble is KafkaTrouble.NO_PARTITION:
                yield RULE.finding(
                    situation.location,
                    f"Kafka at {servers} has no partition {found.partition} of {found.topic!r}",
                    why="The checkpoint goes on in this partition: the topic was recreated with "
                    "fewer partitions, or this is another cluster.",
                    do="Point the source at the cluster that has it.",
                )
