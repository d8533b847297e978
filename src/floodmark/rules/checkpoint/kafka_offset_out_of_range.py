"""Finds Kafka offsets that the broker does not have, or does not have yet."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.connectors.kafka.reach import shortfalls
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM146",
    "kafka-offset-out-of-range",
    Severity.ERROR,
    finds="With --sources: offsets before the first or after the last that the broker has, or a "
    "topic or partition that it does not have.",
    matters="Retention removed records that the stream had not read, the topic was recreated, or "
    "this is another cluster.",
    restart="With failOnDataLoss the query fails at its first batch; without it, records are "
    "skipped or read again, silently.",
    instead="Bring the records back if another place has them, or point the source at its "
    "cluster. To go on with what is left: failOnDataLoss=false.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    asked = evidence.answered(lambda outside: outside.kafka, parse_kafka_offset)
    for entry, source, needed, bounds in asked:
        for found in shortfalls(needed, bounds):
            yield RULE.finding(entry, f"Source {source}: {found.words}.")
