"""Asks a Kafka cluster with the client that Spark's own connector brings.

The client uses the source's `kafka.*` options unchanged, so it gets access wherever Spark does
(TLS, SASL, a token).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from floodmark.checkpoint.live_answers import Bounds
from floodmark.connectors.kafka.consumer_group import HeldOffset, has_members
from floodmark.connectors.kafka.offset import SERVERS
from floodmark.connectors.kafka.subscription import reads_committed
from floodmark.errors import CannotRead

_PREFIX = "kafka."
_PATIENCE_MS = 10_000
# Options of the consumer that an admin client does not know, and would warn about.
_CONSUMER_ONLY = ("group.id", "enable.auto.commit", "auto.offset.reset")


class Broker:
    """Asks a cluster; raises CannotRead where it does not answer, or refuses access."""

    def __init__(
        self, spark: Any, client: Any, bootstrap: str = "", committed: bool = False
    ) -> None:
        self._spark = spark
        self._committed = committed
        self._client = client
        self.bootstrap = bootstrap

    @staticmethod
    def connect(spark: Any, options: Mapping[str, str]) -> Broker:
        from py4j.protocol import Py4JError

        conf = spark._jvm.java.util.HashMap()
        for key, value in options.items():
            name = key.removeprefix(_PREFIX)
            if key.startswith(_PREFIX) and not name.startswith(_CONSUMER_ONLY):
                conf.put(name, value)
        conf.put("default.api.timeout.ms", str(_PATIENCE_MS))
        conf.put("request.timeout.ms", str(_PATIENCE_MS // 2))
        try:
            client = spark._jvm.org.apache.kafka.clients.admin.AdminClient.create(conf)
        except (Py4JError, TypeError) as error:  # TypeError: there is no such class in the JVM
            raise CannotRead(_words(error)) from None
        return Broker(spark, client, options.get(SERVERS, ""), reads_committed(options))

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close(self._spark._jvm.java.time.Duration.ofSeconds(2))

    def bounds(self, topics: Iterable[str]) -> dict[str, dict[int, Bounds]]:
        """Return the bounds of each existing topic, by partition; `stable` is where a source that
        reads only committed records stops.
        """
        partitions = self._partitions(list(topics))
        spec = self._spark._jvm.org.apache.kafka.clients.admin.OffsetSpec
        earliest = self._offsets(partitions, spec.earliest())
        latest = self._offsets(partitions, spec.latest())
        stable = self._offsets(partitions, spec.latest(), True) if self._committed else {}
        return {
            topic: {
                number: Bounds(
                    earliest[topic, number], latest[topic, number], stable.get((topic, number))
                )
                for number in numbers
            }
            for topic, numbers in partitions.items()
        }

    def _partitions(self, topics: list[str]) -> dict[str, list[int]]:
        from py4j.protocol import Py4JJavaError

        wanted = self._spark._jvm.java.util.ArrayList()
        for topic in topics:
            wanted.add(topic)
        found: dict[str, list[int]] = {}
        answers = self._client.describeTopics(wanted).topicNameValues()
        for topic in topics:
            try:
                described = answers.get(topic).get()
            except Py4JJavaError as error:
                if "UnknownTopic" in _words(error) or "InvalidTopic" in _words(error):
                    continue
                raise CannotRead(_words(error)) from None
            found[topic] = [int(one.partition()) for one in described.partitions()]
        return found

    def _offsets(
        self, partitions: Mapping[str, list[int]], spec: Any, committed: bool = False
    ) -> dict[tuple[str, int], int]:
        from py4j.protocol import Py4JJavaError

        wanted = self._spark._jvm.java.util.HashMap()
        keys = {}
        for topic, numbers in partitions.items():
            for number in numbers:
                key = self._spark._jvm.org.apache.kafka.common.TopicPartition(topic, number)
                keys[topic, number] = key
                wanted.put(key, spec)
        jvm = self._spark._jvm.org.apache.kafka
        levels = jvm.common.IsolationLevel
        level = levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
        how = jvm.clients.admin.ListOffsetsOptions(level)
        try:
            answer = self._client.listOffsets(wanted, how).all().get()
        except Py4JJavaError as error:
            raise CannotRead(_words(error)) from None
        return {place: int(answer.get(key).offset()) for place, key in keys.items()}

    def members(self, group: str) -> list[str]:
        """Return who reads as this group now; an empty list if there is no such group."""
        from py4j.protocol import Py4JJavaError

        wanted = self._spark._jvm.java.util.ArrayList()
        wanted.add(group)
        try:
            answer = self._client.describeConsumerGroups(wanted).describedGroups().get(group)
            found = answer.get().members()
        except Py4JJavaError as error:
            if "GroupIdNotFound" in _words(error):
                return []
            raise CannotRead(_words(error)) from None
        return [f"{one.clientId()} at {one.host()}" for one in found]

    def held(self, group: str) -> dict[tuple[str, int], HeldOffset]:
        """Return what the group has committed."""
        from py4j.protocol import Py4JJavaError

        try:
            listed = self._client.listConsumerGroupOffsets(group)
            answer = listed.partitionsToOffsetAndMetadata().get()
        except Py4JJavaError as error:
            if "GroupIdNotFound" in _words(error):
                return {}
            raise CannotRead(_words(error)) from None
        return {
            (str(place.topic()), int(place.partition())): HeldOffset(
                int(at.offset()), str(at.metadata())
            )
            for place, at in dict(answer).items()
            if at is not None
        }

    def commit(self, group: str, offsets: Mapping[tuple[str, int], HeldOffset]) -> None:
        from py4j.protocol import Py4JJavaError

        jvm = self._spark._jvm
        wanted = jvm.java.util.HashMap()
        for (topic, number), at in offsets.items():
            place = jvm.org.apache.kafka.common.TopicPartition(topic, number)
            held = jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(at.offset, at.metadata)
            wanted.put(place, held)
        try:
            self._client.alterConsumerGroupOffsets(group, wanted).all().get()
        except Py4JJavaError as error:
            if "UnknownMemberId" in _words(error):
                raise has_members(group, self.bootstrap, []) from None
            raise CannotRead(_words(error)) from None


def _words(error: BaseException) -> str:
    """Return the innermost cause in one line."""
    found = getattr(error, "java_exception", None)
    if found is None:
        return str(error).splitlines()[0]
    while found.getCause() is not None:
        found = found.getCause()
    name = str(found.getClass().getSimpleName())
    message = str(found.getMessage() or "").splitlines()
    return f"{name}: {message[0]}" if message else name
