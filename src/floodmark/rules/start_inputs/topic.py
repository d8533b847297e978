"""Finds where a query goes on in the topics of a Kafka source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.connectors.kafka.reach import KafkaShortfall, KafkaTrouble, shortfalls
from floodmark.errors import MalformedFile
from floodmark.rules.start_inputs.situation import Situation, StartingSource


def troubles(
    situation: Situation, trouble: KafkaTrouble
) -> Iterator[tuple[StartingSource, KafkaShortfall]]:
    """Yield the partitions of the query's topics with such a problem."""
    for source in situation.of_kind("kafka"):
        bounds = situation.outside.kafka.get(source.id, {})
        for found in shortfalls(needed_topics(source), bounds):
            if found.trouble is trouble:
                yield source, found


def needed_topics(source: StartingSource) -> Mapping[str, Mapping[int, int]]:
    """Return topic → partition → the next offset to read; empty for a stream that starts over."""
    if source.position is None or source.position.offset is None:
        return {}
    try:
        return parse_kafka_offset(source.position.offset)
    except MalformedFile:
        return {}  # the doctor reports it
