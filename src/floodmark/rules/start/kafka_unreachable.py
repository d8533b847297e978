"""Finds a Kafka cluster that does not answer."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.kafka.offset import SERVERS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM404",
    "kafka-unreachable",
    Severity.ERROR,
    finds="A Kafka source whose brokers do not answer, or do not let this user in.",
    matters="Nobody knows whether the topic and its records are still there.",
    restart="Spark waits for the brokers, and fails after its time-outs.",
    instead="Check kafka.bootstrap.servers, and that the broker runs and lets this user in.",
    passing=True,
)


def check(situation: Situation) -> Iterator[Finding]:
    for source in situation.of_kind("kafka"):
        why = situation.outside.silent.get(source.id)
        if why is not None:
            servers = source.options.get(SERVERS, "")
            yield RULE.finding(situation.location, f"Kafka at {servers} is not reachable", why=why)
