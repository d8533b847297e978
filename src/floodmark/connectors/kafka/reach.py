"""Decides which offsets of a stream a Kafka cluster lacks: one answer for all verbs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from floodmark.checkpoint.live_answers import Bounds

Topics = Mapping[str, Mapping[int, int]]
"""Topic → partition → offset."""


class KafkaTrouble(str, Enum):
    NO_TOPIC = "no-topic"
    NO_PARTITION = "no-partition"
    GONE = "gone"
    """Retention removed records that the stream has not read."""
    AHEAD = "ahead"
    """The partition ends before the offset: the topic was recreated, or it is another cluster."""


@dataclass(frozen=True)
class KafkaShortfall:
    trouble: KafkaTrouble
    topic: str
    partition: int = -1
    offset: int = -1
    earliest: int = -1
    end: int = -1

    @property
    def records(self) -> int:
        """The number of records that are out of reach, as far as they can be counted."""
        return self.earliest - self.offset if self.trouble is KafkaTrouble.GONE else 0

    @property
    def words(self) -> str:
        where = f"{self.topic} partition {self.partition}"
        if self.trouble is KafkaTrouble.NO_TOPIC:
            return f"topic {self.topic} does not exist"
        if self.trouble is KafkaTrouble.NO_PARTITION:
            return f"{where} is gone"
        if self.trouble is KafkaTrouble.GONE:
            many = f"{self.records:,} records" if self.records != 1 else "1 record"
            are = "are" if self.records != 1 else "is"
            return (
                f"{where}: {many} from offset {self.offset} on {are} gone; the oldest offset is "
                f"{self.earliest}"
            )
        return (
            f"{where} ends at {self.end} (with open transactions), before offset {self.offset}: "
            "the topic was recreated, or this is another cluster"
        )


def shortfalls(
    needed: Topics, bounds: Mapping[str, Mapping[int, Bounds]]
) -> Iterator[KafkaShortfall]:
    """Yield what the cluster lacks of the records from these offsets on."""
    for topic, partitions in needed.items():
        there = bounds.get(topic, {})
        if not there:
            yield KafkaShortfall(KafkaTrouble.NO_TOPIC, topic)
            continue
        for partition, offset in sorted(partitions.items()):
            found = there.get(partition)
            if found is None:
                yield KafkaShortfall(KafkaTrouble.NO_PARTITION, topic, partition, offset)
                continue
            earliest, end = found.earliest, found.end
            if offset < earliest:
                yield KafkaShortfall(KafkaTrouble.GONE, topic, partition, offset, earliest, end)
            elif offset > end:
                yield KafkaShortfall(KafkaTrouble.AHEAD, topic, partition, offset, earliest, end)


def added_partitions(
    needed: Topics, bounds: Mapping[str, Mapping[int, Bounds]]
) -> dict[str, tuple[int, ...]]:
    """Return the partitions that the topics have gained: Spark reads them from their start."""
    gained = {
        topic: tuple(sorted(set(bounds.get(topic, {})) - set(partitions)))
        for topic, partitions in needed.items()
    }
    return {topic: partitions for topic, partitions in gained.items() if partitions}
