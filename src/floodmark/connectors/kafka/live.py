"""Asks a Kafka cluster what it still has of a topic, and where a topic stood at a time."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from floodmark.checkpoint.live_answers import Bounds, LiveAnswers
from floodmark.checkpoint.relative_path import shown
from floodmark.checkpoint.text import moment
from floodmark.connectors.kafka.offset import SERVERS, parse_kafka_offset
from floodmark.connectors.kafka.subscription import subscribed_topics
from floodmark.connectors.live import IN_THE_LOG, PlaceAtTime, Question, TimeQuestion
from floodmark.connectors.source import render_json
from floodmark.errors import BatchPurged, CannotRead, MalformedFile, WrongUse

_PATIENCE_SECONDS = 15.0


def ask(question: Question) -> LiveAnswers:
    """Return the bounds of the existing topics that the source reads."""
    source = question.source
    offset = source.position.offset
    known = () if offset is None else parse_kafka_offset(offset)
    topics = tuple(sorted({*known, *subscribed_topics(source.options)}))
    return LiveAnswers(kafka={source.position.id: question.ask_kafka(source.options, topics)})


def cluster_bounds(
    options: Mapping[str, str], topics: Iterable[str]
) -> Mapping[str, Mapping[int, Bounds]]:
    servers = options.get(SERVERS)
    if not servers:
        raise MalformedFile("its brokers are not known (--bootstrap-servers HOST:PORT)")
    cluster = Cluster(servers)
    try:
        found = {topic: cluster.bounds(topic) for topic in topics}
    finally:
        cluster.close()
    return {topic: bounds for topic, bounds in found.items() if bounds}


def require_client() -> None:
    from importlib.util import find_spec

    if find_spec("confluent_kafka") is None:
        raise WrongUse(
            "asking Kafka needs confluent-kafka",
            do="Install it: pip install 'floodmark[kafka]'",
        )


class Cluster:
    def __init__(self, bootstrap: str, options: Mapping[str, str] | None = None) -> None:
        require_client()
        from confluent_kafka import Consumer

        self.bootstrap = bootstrap
        self._client: Any = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "floodmark",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # Otherwise an open transaction would look like the end of a partition.
                "isolation.level": "read_uncommitted",
                "log_level": 0,
                **(options or {}),
            }
        )

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """Return the bounds by partition; empty if the cluster has no such topic."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            found = self._client.list_topics(topic, timeout=_PATIENCE_SECONDS).topics[topic]
            if found.error is not None:
                return {}
            return {
                partition: Bounds(
                    *self._client.get_watermark_offsets(
                        TopicPartition(topic, partition), timeout=_PATIENCE_SECONDS
                    )
                )
                for partition in sorted(found.partitions)
            }
        except KafkaException as error:
            raise self._silent(error) from None

    def at_time(self, topic: str, time_ms: int) -> dict[int, int]:
        """Return the first offset of each partition whose record is not older than the time."""
        bounds = self.bounds(topic)
        return self.at_times(topic, dict.fromkeys(bounds, time_ms), bounds)

    def at_times(
        self, topic: str, times_ms: Mapping[int, int], bounds: Mapping[int, Bounds]
    ) -> dict[int, int]:
        """Return the same, with a separate time for each partition."""
        from confluent_kafka import KafkaException, TopicPartition

        if not times_ms:
            return {}
        asked = [TopicPartition(topic, partition, at_ms) for partition, at_ms in times_ms.items()]
        try:
            answers = self._client.offsets_for_times(asked, timeout=_PATIENCE_SECONDS)
        except KafkaException as error:
            raise self._silent(error) from None
        # A negative offset means that every record is older.
        return {
            one.partition: one.offset if one.offset >= 0 else bounds[one.partition].end
            for one in answers
        }

    def record_time(self, topic: str, partition: int, offset: int) -> int | None:
        """Return the time of the first record from this offset on; None if there is none."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            self._client.assign([TopicPartition(topic, partition, offset)])
            message = self._client.poll(_PATIENCE_SECONDS)
        except KafkaException as error:
            raise self._silent(error) from None
        finally:
            self._client.unassign()
        if message is None or message.error() is not None:
            return None
        return int(message.timestamp()[1])

    def _silent(self, error: Exception) -> CannotRead:
        return CannotRead(
            f"Kafka at {self.bootstrap} does not answer",
            str(error),
            "Check the address. Or leave --kafka out; then floodmark does not ask Kafka.",
        )

    def close(self) -> None:
        self._client.close()


def place_at(question: TimeQuestion) -> PlaceAtTime:
    """Return where the source stood at a time, by the cluster's index of its records by time.

    Only brokers that the user names are asked: anybody may have written a note.
    """
    source, time_ms = question.source.position, question.time_ms
    bootstrap, noted = question.places.bootstrap_servers, question.source.options.get(SERVERS)
    if bootstrap is None:
        raise BatchPurged(
            f"no batch of {moment(time_ms)} is logged any more, and Kafka was not asked",
            "Its brokers are not known: this stream was not started by `floodmark run`."
            if noted is None
            else "Only a note in the checkpoint names its brokers; anybody may have written it.",
            "Give the brokers, so that floodmark can ask for that time: --kafka "
            f"{'HOST:PORT' if noted is None else shlex.quote(shown(noted))}. {IN_THE_LOG}",
        )
    now = parse_kafka_offset(source.offset)
    cluster = Cluster(bootstrap)
    lost, notes = [], []
    place: dict[str, dict[str, int]] = {}
    try:
        for topic, partitions in now.items():
            then = cluster.at_time(topic, time_ms)
            oldest = {number: one.earliest for number, one in cluster.bounds(topic).items()}
            place[topic] = {}
            for partition, at in sorted(partitions.items()):
                if partition not in then:
                    lost.append(f"{topic} partition {partition} is gone")
                # Producers choose the times of records: never go beyond what was read.
                found = min(at, then.get(partition, at))
                place[topic][str(partition)] = found
                if 0 < oldest.get(partition, 0) == found:
                    notes.append(
                        f"{topic} partition {partition} has nothing before offset {found}: "
                        "records of that time may be gone already."
                    )
    finally:
        cluster.close()
    where = "; ".join(f"{topic} {render_json(at)}" for topic, at in place.items())
    notes.insert(0, f"Kafka at {bootstrap} stood there at {moment(time_ms)}: {where}.")
    text = source.text if place == source.offset else render_json(place)
    return PlaceAtTime(text or "", lost, notes)
