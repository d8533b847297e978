"""Where a query goes on in the topics of a Kafka source."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.errors import MalformedFile
from floodmark.rules.start_inputs.situation import StartingSource


def needed_topics(source: StartingSource) -> Mapping[str, Mapping[int, int]]:
    """Topic → partition → the next offset to read; empty for a stream that starts over."""
    if source.position is None or source.position.offset is None:
        return {}
    try:
        return parse_kafka_offset(source.position.offset)
    except MalformedFile:
        return {}  # the doctor's to tell
