"""What a Kafka cluster says before a stream moves to it: what it still has, and has not.

A checkpoint's offsets are worth what the cluster keeps behind them. Retention, a topic
that was made anew, or another cluster make them point at nothing, or at other records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from floodmark.changes.carry.resume_point import UpgradeOptions, choose_course
from floodmark.changes.sources.cluster_by_time import by_batch_time, by_record_time
from floodmark.changes.sources.out_of_reach import Reach, require_reach
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outside import Bounds
from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.connectors.kafka.reach import Topics, added_partitions, shortfalls
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.errors import CannotRead, WrongUse

Notes = tuple[str, ...]
_PATIENCE_SECONDS = 15.0


class Cluster:
    def __init__(self, bootstrap: str, options: Mapping[str, str] | None = None) -> None:
        try:
            from confluent_kafka import Consumer
        except ImportError:
            raise WrongUse(
                "asking Kafka needs confluent-kafka",
                do="Install it: pip install 'floodmark[kafka]'",
            ) from None
        self.bootstrap = bootstrap
        self._client: Any = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "floodmark",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
                **(options or {}),
            }
        )

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """By partition; empty where the cluster has no such topic."""
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
        """The first offset of each partition whose record is not older than the time."""
        bounds = self.bounds(topic)
        return self.at_times(topic, dict.fromkeys(bounds, time_ms), bounds)

    def at_times(
        self, topic: str, times_ms: Mapping[int, int], bounds: Mapping[int, Bounds]
    ) -> dict[int, int]:
        """The same, with a time of its own for each partition."""
        from confluent_kafka import KafkaException, TopicPartition

        if not times_ms:
            return {}
        asked = [TopicPartition(topic, partition, at_ms) for partition, at_ms in times_ms.items()]
        try:
            answers = self._client.offsets_for_times(asked, timeout=_PATIENCE_SECONDS)
        except KafkaException as error:
            raise self._silent(error) from None
        # A negative offset says that every record is older.
        return {
            one.partition: one.offset if one.offset >= 0 else bounds[one.partition].end
            for one in answers
        }

    def record_time(self, topic: str, partition: int, offset: int) -> int | None:
        """The time of the first record from this offset on; None: there is none."""
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
            "Check the address, or leave --kafka out: then nothing is asked.",
        )

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True)
class KafkaAnswer:
    request: UpgradeOptions
    notes: tuple[str, ...]


def ask_kafka(
    checkpoint: Checkpoint, request: UpgradeOptions, noted: str | None = None
) -> KafkaAnswer:
    """The request, with the offsets of another cluster where that is asked for, and what to know.

    `noted`: the cluster that the stream has read, as its last start has noted it. It is named and
    not asked: anybody may have written the note.
    """
    bootstrap = request.kafka
    if bootstrap is None:
        if request.by_time:
            raise WrongUse("--by-time asks a cluster", do="Name it: --kafka HOST:PORT.")
        return KafkaAnswer(request, ())
    if request.by_time:
        # The planned range is one of the old cluster's offsets: it cannot be run again.
        request = replace(request, drop_in_flight=True)
    course = choose_course(checkpoint, request)
    batch = course.after if course.after is not None else course.in_flight
    assert batch is not None
    sources = [s for s in checkpoint.sources_of(batch) if about(s).has_topics]
    if not sources:
        raise no_kafka()
    cluster = Cluster(bootstrap)
    try:
        if request.by_time:
            moved, notes = _by_time(checkpoint, request, batch, sources, cluster, noted)
            return KafkaAnswer(replace(request, moved_offsets=moved), notes)
        return KafkaAnswer(request, _out_of_reach(request, sources, cluster))
    finally:
        cluster.close()


def _by_time(
    checkpoint: Checkpoint,
    request: UpgradeOptions,
    batch: int,
    sources: list[SourceOffset],
    cluster: Cluster,
    noted: str | None,
) -> tuple[tuple[tuple[str, str], ...], Notes]:
    renamed = dict(request.map_topic)
    if request.old_kafka is None:
        entry = checkpoint.offsets[batch]
        return by_batch_time(entry, batch, sources, renamed, cluster, request, noted)
    left = Cluster(request.old_kafka)
    try:
        return by_record_time(sources, renamed, left, cluster, request)
    finally:
        left.close()


def _topics(renamed: Mapping[str, str], source: SourceOffset) -> dict[str, dict[int, int]]:
    offsets = parse_kafka_offset(source.offset)
    return {renamed.get(topic, topic): partitions for topic, partitions in offsets.items()}


def _out_of_reach(request: UpgradeOptions, sources: list[SourceOffset], cluster: Cluster) -> Notes:
    topics = [_topics(dict(request.map_topic), source) for source in sources]
    return require_reach(reach_of(topics, cluster), request.accept, _sound(cluster))


def ask_reach(sources: Sequence[SourceOffset], bootstrap: str, accept: Sequence[str]) -> Notes:
    """What the cluster has left of the records after these offsets."""
    kafka = [source for source in sources if about(source).has_topics]
    if not kafka:
        raise no_kafka()
    cluster = Cluster(bootstrap)
    try:
        found = reach_of([_topics({}, source) for source in kafka], cluster)
    finally:
        cluster.close()
    return require_reach(found, accept, _sound(cluster))


def no_kafka() -> WrongUse:
    return WrongUse(
        "--kafka: no source of this stream reads Kafka",
        do="Leave --kafka out; `floodmark inspect CP` shows the sources.",
    )


def _sound(cluster: Cluster) -> str:
    return f"Kafka at {cluster.bootstrap} still has everything that comes next."


def reach_of(sources: Sequence[Topics], cluster: Cluster) -> Reach:
    lost: list[str] = []
    notes: list[str] = []
    records = 0
    for topics in sources:
        found = reach(topics, {topic: cluster.bounds(topic) for topic in topics})
        lost += found.lost
        notes += found.notes
        records += found.records
    return Reach(tuple(lost), tuple(notes), records)


def reach(offsets: Topics, bounds: Mapping[str, Mapping[int, Bounds]]) -> Reach:
    """What of the records after these offsets the cluster cannot give any more. Pure."""
    found = tuple(shortfalls(offsets, bounds))
    notes = (
        f"{topic} has new partitions ({', '.join(map(str, partitions))}): Spark reads them from "
        "the start."
        for topic, partitions in added_partitions(offsets, bounds).items()
    )
    return Reach(tuple(one.words for one in found), tuple(notes), sum(one.records for one in found))
