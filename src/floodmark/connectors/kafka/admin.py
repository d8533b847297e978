"""Asks a Kafka cluster about many partitions at once: bounds, retention, times of records.

One deadline holds for all questions together. If a broker does not answer, the error says so, and
nobody waits longer than the user allows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from floodmark.checkpoint.live_answers import Bounds
from floodmark.connectors.kafka.live import require_client
from floodmark.errors import CannotRead, FloodmarkError, WrongUse

_RETENTION = ("retention.ms", "retention.bytes", "cleanup.policy")
_UNKNOWN_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION", "_UNKNOWN_TOPIC", "INVALID_TOPIC")
_UNSETTLED = ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS")
_TELLING = ("_AUTHENTICATION", "_SSL", "_RESOLVE", "_TRANSPORT")
_FETCHED_BYTES = 65_536
_SAMPLED, _SAMPLED_IN_ALL = 20, 4000
"""How many records are measured: in one partition, and in all together."""
_LONGEST_REQUEST = 3600.0
"""In seconds. librdkafka accepts no more."""
_Answer = TypeVar("_Answer")

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LARGEST_PARTITION = 2**31 - 1
_LARGEST_OFFSET = 2**63 - 1

Place = tuple[str, int]
"""Topic and partition."""


def can_be(place: Place, offset: int = 0) -> bool:
    """Whether a cluster can have such a partition and offset."""
    topic, partition = place
    return (
        _TOPIC.fullmatch(topic) is not None
        and 0 <= partition <= _LARGEST_PARTITION
        and 0 <= offset <= _LARGEST_OFFSET
    )


class TopicRetention(NamedTuple):
    """When Kafka removes the records of a topic, by the topic's settings."""

    ms: int | None
    """The age at which records are removed; None if they are not removed by age."""
    limits_bytes: bool
    """Whether records are also removed when a partition grows too large."""
    compacted: bool


class FirstRecords(NamedTuple):
    """The records at the beginning of a range of offsets."""

    time_ms: int | None
    """The time of the first record; None if there is no record, or it has no time."""
    records: int
    bytes: int
    """The size of their keys, values and headers, before compression."""
    offsets: int
    """The number of offsets that they span: compaction and transactions leave gaps."""


class Admin:
    """A client of one cluster. Raises CannotRead if the cluster does not answer, or refuses."""

    def __init__(
        self, bootstrap: str, config: Mapping[str, str] | None = None, timeout: float = 15.0
    ) -> None:
        require_client()
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        self.bootstrap = bootstrap
        self._config = {**(config or {}), "bootstrap.servers": bootstrap, "log_level": 0}
        self._complaints: list[str] = []
        self._timeout = timeout
        self._until = time.monotonic() + timeout
        try:
            self.client: Any = AdminClient({**self._config, "error_cb": self._complained})
        except (KafkaException, ValueError, TypeError) as error:
            raise WrongUse(
                f"--kafka-config: Kafka's client refuses the settings: {_words(error)}",
                "The client is librdkafka. Some of its names differ from Java's.",
                "Look the settings up: https://github.com/confluentinc/librdkafka/blob/master/"
                "CONFIGURATION.md",
            ) from None

    @property
    def seconds_left(self) -> float:
        """The rest of the time limit. Never 0, which a client would read as no limit."""
        return min(_LONGEST_REQUEST, max(0.05, self._until - time.monotonic()))

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the partitions of each topic that exists."""
        from confluent_kafka import TopicCollection

        wanted = [topic for topic in topics if can_be((topic, 0))]
        if not wanted:
            return {}
        asked = self.client.describe_topics(
            TopicCollection(wanted), request_timeout=self.seconds_left
        )
        found: dict[str, list[int]] = {}
        for topic, answer in asked.items():
            try:
                described = answer.result(self.seconds_left)
            except Exception as error:
                if code_of(error) in _UNKNOWN_TOPIC:
                    continue
                raise self.silent(error) from None
            found[topic] = sorted(int(one.id) for one in described.partitions)
        return found

    def bounds(self, topics: Iterable[str]) -> dict[str, dict[int, Bounds]]:
        """Return the bounds of each existing topic by partition, with the start of open
        transactions.
        """
        from confluent_kafka.admin import OffsetSpec

        partitions = self.partitions(topics)
        earliest = self._offsets(partitions, OffsetSpec.earliest())
        latest = self._offsets(partitions, OffsetSpec.latest())
        stable = self._offsets(partitions, OffsetSpec.latest(), committed=True)
        return {
            topic: {
                number: Bounds(*(found[topic, number] for found in (earliest, latest, stable)))
                for number in numbers
            }
            for topic, numbers in partitions.items()
        }

    def _offsets(
        self, partitions: Mapping[str, list[int]], spec: Any, committed: bool = False
    ) -> dict[Place, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        wanted = {
            TopicPartition(topic, number): spec
            for topic, numbers in partitions.items()
            for number in numbers
        }
        if not wanted:
            return {}
        # Kafka's own tools count records of open transactions, and so does Spark unless the
        # stream's option says otherwise.
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        try:
            asked = self.client.list_offsets(
                wanted, isolation_level=level, request_timeout=self.seconds_left
            )
            return {
                (place.topic, place.partition): int(answer.result(self.seconds_left).offset)
                for place, answer in asked.items()
            }
        except Exception as error:
            raise self.silent(error) from None

    def retention(self, topics: Iterable[str]) -> dict[str, TopicRetention | str]:
        """Return the retention by topic; a text with the reason if the cluster does not say it."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        wanted = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not wanted:
            return {}
        asked = self.client.describe_configs(wanted, request_timeout=self.seconds_left)
        found: dict[str, TopicRetention | str] = {}
        for resource, answer in asked.items():
            try:
                entries = answer.result(self.seconds_left)
                found[resource.name] = _retention(
                    {name: entries[name].value for name in _RETENTION if name in entries}
                )
            except Exception as error:
                found[resource.name] = _words(error)
        return found

    def first_records(self, ranges: Mapping[Place, tuple[int, int]]) -> dict[Place, FirstRecords]:
        """Return a few records from the start of each range (first offset, end).

        Partitions that did not answer in time are left out.
        """
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        if not ranges:
            return {}
        config = {
            **self._config,
            "group.id": "floodmark",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            # A few records of each partition are enough, so the broker should send no more.
            "fetch.message.max.bytes": _FETCHED_BYTES,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 1024,
        }
        most = max(1, min(_SAMPLED, _SAMPLED_IN_ALL // len(ranges)))
        samples = {place: _Sample(start, end, most) for place, (start, end) in ranges.items()}
        waiting = set(samples)
        consumer: Any = Consumer(config)
        try:
            consumer.assign([TopicPartition(t, p, at) for (t, p), (at, _) in ranges.items()])
            while waiting and time.monotonic() < self._until:
                message = consumer.poll(min(0.5, self.seconds_left))
                if message is None:
                    continue
                place = (message.topic(), message.partition())
                if place in waiting and samples[place].add(message):
                    waiting.remove(place)
                    consumer.pause([TopicPartition(*place)])
        except KafkaException as error:
            raise self.silent(error) from None
        finally:
            consumer.close()
        return {place: one.found() for place, one in samples.items() if one.answered}

    def silent(self, error: Exception) -> FloodmarkError:
        if isinstance(error, FloodmarkError):
            return error
        if isinstance(error, TimeoutError) or code_of(error) in ("_TIMED_OUT", "_TRANSPORT", ""):
            self.client.poll(0)  # this fetches the client's own complaints
            return CannotRead(
                f"Kafka at {self.bootstrap} does not answer within {self._timeout:g} s",
                self._complaints[0] if self._complaints else "",
                do="Check the address, the network and --kafka-config. --timeout SECONDS waits "
                "longer.",
            )
        return CannotRead(
            f"Kafka at {self.bootstrap} refuses: {_words(error)} ({code_of(error)})",
            do="Check which user --kafka-config logs in, and what that user may do.",
        )

    def _complained(self, error: Any) -> None:
        """Keep the client's text about a failed connection; the first one is the cause."""
        if error.name() in _TELLING:
            self._complaints.append(str(error.str()))

    def settled(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask again while the cluster is still finding out who has to answer."""
        while True:
            try:
                return ask()
            except Exception as error:
                if code_of(error) not in _UNSETTLED or time.monotonic() > self._until:
                    raise
                time.sleep(0.1)


class _Sample:
    """The first records of one range, collected as they arrive."""

    def __init__(self, start: int, end: int, most: int) -> None:
        self._start, self._end, self._most = start, end, most
        self._next = start
        self._time: int | None = None
        self._records = self._bytes = 0
        self.answered = False

    def add(self, message: Any) -> bool:
        """Add a record; return whether that is enough."""
        is_first = not self.answered
        self.answered = True
        if message.error() is not None:
            self._next = self._end  # the partition's end: compaction removed what lay between
            return True
        if is_first:
            kind, at_ms = message.timestamp()
            self._time = int(at_ms) if kind and at_ms > 0 else None
        if message.offset() >= self._end:
            self._next = self._end
            return True
        self._records += 1
        self._bytes += _size(message)
        self._next = message.offset() + 1
        enough = self._records >= self._most or self._bytes >= _FETCHED_BYTES
        return enough or self._next >= self._end

    def found(self) -> FirstRecords:
        return FirstRecords(self._time, self._records, self._bytes, self._next - self._start)


def _size(message: Any) -> int:
    headers = message.headers() or ()
    beside = sum(len(name) + len(value or b"") for name, value in headers)
    return len(message.key() or b"") + len(message.value() or b"") + beside


def _retention(settings: Mapping[str, str | None]) -> TopicRetention:
    policy = settings.get("cleanup.policy") or ""
    deletes = "delete" in policy
    age = _number(settings.get("retention.ms"))
    size = _number(settings.get("retention.bytes"))
    return TopicRetention(
        age if deletes and age is not None and age >= 0 else None,
        deletes and size is not None and size >= 0,
        "compact" in policy,
    )


def _number(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None


def code_of(error: Exception) -> str:
    """Return the name of Kafka's own error, or an empty text."""
    inner = error.args[0] if error.args else None
    name = getattr(inner, "name", None)
    return str(name()) if callable(name) else ""


def _words(error: Exception) -> str:
    inner = error.args[0] if error.args else None
    text = getattr(inner, "str", None)
    said = text() if callable(text) else str(error)
    return said or type(error).__name__
