"""What a Kafka cluster says before a stream moves to it: what it still has, and has not.

A checkpoint's offsets are worth what the cluster keeps behind them. Retention, a topic
that was made anew, or another cluster make them point at nothing, or at other records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from floodmark.changes.course import Wish, choose_course
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.sources import (
    SourceKind,
    SourceOffset,
    parse_kafka_offset,
    render_json,
)
from floodmark.errors import CannotRead, WrongUse

Topics = Mapping[str, Mapping[int, int]]
_PATIENCE_SECONDS = 15.0


@dataclass(frozen=True)
class Bounds:
    earliest: int
    end: int
    """The next offset to be written."""


@dataclass(frozen=True)
class Reach:
    """How a checkpoint's offsets stand to what the cluster has."""

    lost: tuple[str, ...]
    """In words: records or partitions that are out of reach."""
    notes: tuple[str, ...]


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
        from confluent_kafka import KafkaException, TopicPartition

        bounds = self.bounds(topic)
        if not bounds:
            return {}
        asked = [TopicPartition(topic, partition, time_ms) for partition in bounds]
        try:
            answers = self._client.offsets_for_times(asked, timeout=_PATIENCE_SECONDS)
        except KafkaException as error:
            raise self._silent(error) from None
        # A negative offset says that every record is older.
        return {
            one.partition: one.offset if one.offset >= 0 else bounds[one.partition].end
            for one in answers
        }

    def _silent(self, error: Exception) -> CannotRead:
        return CannotRead(
            f"Kafka at {self.bootstrap} does not answer",
            str(error),
            "Check the address, or leave --kafka out: then nothing is asked.",
        )

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True)
class Asked:
    wish: Wish
    notes: tuple[str, ...]


def ask_kafka(checkpoint: Checkpoint, wish: Wish) -> Asked:
    """The wish, with the offsets of another cluster where that is asked for, and what to know."""
    bootstrap = wish.kafka
    if bootstrap is None:
        if wish.by_time:
            raise WrongUse("--by-time asks a cluster", do="Name it: --kafka HOST:PORT.")
        return Asked(wish, ())
    if wish.by_time:
        # The planned range is one of the old cluster's offsets: it cannot be run again.
        wish = replace(wish, drop_in_flight=True)
    course = choose_course(checkpoint, wish)
    batch = course.after if course.after is not None else course.in_flight
    assert batch is not None
    sources = [s for s in checkpoint.sources_of(batch) if s.kind is SourceKind.KAFKA]
    if not sources:
        raise WrongUse("--kafka: no source of this stream reads Kafka")
    cluster = Cluster(bootstrap)
    try:
        if wish.by_time:
            return _by_time(checkpoint, wish, batch, sources, cluster)
        return Asked(wish, _out_of_reach(wish, sources, cluster))
    finally:
        cluster.close()


def _topics(wish: Wish, source: SourceOffset) -> dict[str, dict[int, int]]:
    renamed = dict(wish.map_topic)
    offsets = parse_kafka_offset(source.offset)
    return {renamed.get(topic, topic): partitions for topic, partitions in offsets.items()}


def _out_of_reach(wish: Wish, sources: list[SourceOffset], cluster: Cluster) -> tuple[str, ...]:
    notes: list[str] = []
    for source in sources:
        topics = _topics(wish, source)
        found = reach(topics, {topic: cluster.bounds(topic) for topic in topics})
        notes += [f"OUT OF REACH: {words}." for words in found.lost]
        notes += found.notes
        if not found.lost:
            notes.append(f"Kafka at {cluster.bootstrap} still has everything that comes next.")
    return tuple(notes)


def _by_time(
    checkpoint: Checkpoint, wish: Wish, batch: int, sources: list[SourceOffset], cluster: Cluster
) -> Asked:
    entry = checkpoint.offsets[batch]
    if entry.metadata is None:
        raise WrongUse(f"--by-time: batch {batch} has no time")
    time_ms = entry.metadata.batch_timestamp_ms
    moved = []
    for source in sources:
        found = {topic: cluster.at_time(topic, time_ms) for topic in _topics(wish, source)}
        missing = [topic for topic, partitions in found.items() if not partitions]
        if missing:
            raise WrongUse(
                f"--by-time: Kafka at {cluster.bootstrap} has no topic {missing[0]}",
                do="Say what it is called there: --map-topic OLD=NEW.",
            )
        text = {t: {str(p): at for p, at in sorted(ps.items())} for t, ps in found.items()}
        moved.append((source.id, render_json(text)))
    moment = datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat()
    note = (
        f"Kafka at {cluster.bootstrap} is read from the time of batch {batch}, {moment}: records "
        "near that time may come twice, and late ones with an earlier time not at all."
    )
    return Asked(replace(wish, moved_offsets=tuple(moved)), (note,))


def reach(offsets: Topics, bounds: Mapping[str, Mapping[int, Bounds]]) -> Reach:
    """What of the records after these offsets the cluster cannot give any more. Pure."""
    lost, notes = [], []
    for topic, partitions in offsets.items():
        there = bounds.get(topic, {})
        if not there:
            lost.append(f"topic {topic} is not there")
            continue
        for partition, at in sorted(partitions.items()):
            found = there.get(partition)
            if found is None:
                lost.append(f"{topic} partition {partition} is gone")
            elif at < found.earliest:
                lost.append(
                    f"{topic} partition {partition}: {found.earliest - at} records from offset "
                    f"{at} on are out of reach; the oldest is {found.earliest}"
                )
            elif at > found.end:
                lost.append(
                    f"{topic} partition {partition} ends at {found.end}, before offset {at}: it "
                    "was made anew, or is another cluster's"
                )
        added = sorted(set(there) - set(partitions))
        if added:
            names = ", ".join(map(str, added))
            notes.append(f"{topic} has new partitions ({names}): Spark reads them from the start.")
    return Reach(tuple(lost), tuple(notes))
