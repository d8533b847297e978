"""A real Kafka broker in KRaft mode: broker and controller in one process."""

from __future__ import annotations

import base64
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from patience import LIMIT, wait_until
from ports import free_port
from services.server import READY_WITHIN, Server, java

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LOGIN_PASSWORD = "s3cr3t-of-ann"
UNSETTLED = {
    "UNKNOWN_LEADER_EPOCH",
    "FENCED_LEADER_EPOCH",
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PART",
}


class KafkaServer(Server):
    name = "kafka"

    def __init__(self, jars: tuple[Path, ...]) -> None:
        super().__init__()
        self._jars = jars
        self._numbers = count(1)
        self.port = free_port()
        self._controller_port = free_port()
        self._login_port = free_port()

    def start(self) -> None:
        """Also after `stop`: the same port, and all that was produced is still there."""
        properties = self.folder / "server.properties"
        if not properties.exists():
            lines = (f"{key}={value}\n" for key, value in self._properties().items())
            properties.write_text("".join(lines))
            self._format(properties)
        self.launch(java(self._jars, "kafka.Kafka", str(properties)), ready=self._answers)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def guarded(self) -> str:
        """The same broker where one has to log in: as ann, with LOGIN_PASSWORD."""
        return f"127.0.0.1:{self._login_port}"

    def create_topic(self, name: str = "topic", partitions: int = 2, **config: str) -> str:
        """A topic that no other test uses: its name, with a number."""
        from confluent_kafka.admin import NewTopic

        topic = f"{name}-{next(self._numbers)}"
        new = NewTopic(
            topic, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()}
        )
        self._admin.create_topics([new])[topic].result(LIMIT)
        self._wait_for(topic, partitions)
        return topic

    def _wait_for(self, topic: str, partitions: int) -> None:
        """The broker answers before it tells of the topic: for a moment it has no partition."""
        wait_until(
            lambda: len(self.end_offsets(topic)) >= partitions,
            lambda: f"{topic} has no {partitions} partitions yet",
        )

    def produce(
        self, topic: str, values: Iterable[str | bytes], partition: int | None = None
    ) -> None:
        """Returns when the broker has them all; partitions in turn unless one is named."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        problems: list[Any] = []
        partitions = len(self.end_offsets(topic))
        for number, value in enumerate(values):
            chosen = number % partitions if partition is None else partition
            while True:
                try:
                    producer.produce(
                        topic,
                        value=value,
                        partition=chosen,
                        on_delivery=lambda error, _: problems.append(error) if error else None,
                    )
                    break
                except BufferError:
                    producer.poll(1)
        left = producer.flush(LIMIT)
        if left or problems:
            raise RuntimeError(f"{left} records were not delivered: {problems[:1]}")

    @contextmanager
    def open_transaction(self, topic: str, values: Iterable[bytes]) -> Iterator[None]:
        """Records of partition 0 that are written and not committed; aborted at the end."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": f"t-{topic}"})
        producer.init_transactions(LIMIT)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(LIMIT)
        try:
            yield
        finally:
            producer.abort_transaction(LIMIT)

    def consume(self, topic: str) -> list[bytes]:
        """All the values that the topic has now, partition by partition."""
        from confluent_kafka import Consumer, TopicPartition

        values = []
        with_group = {"bootstrap.servers": self.bootstrap, "group.id": "floodmark"}
        consumer = Consumer({**with_group, "enable.auto.commit": False})
        try:
            for partition, end in self.end_offsets(topic).items():
                begin, _ = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=LIMIT
                )
                consumer.assign([TopicPartition(topic, partition, begin)])
                for _ in range(begin, end):
                    message = consumer.poll(LIMIT)
                    if message is None or message.error():
                        raise RuntimeError(f"{topic}-{partition}: {message and message.error()}")
                    values.append(message.value())
        finally:
            consumer.close()
        return values

    def end_offsets(self, topic: str) -> dict[int, int]:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + LIMIT
        while True:
            try:
                return self._end_offsets(topic)
            except KafkaException as error:
                # A broker that has just come back elects its leaders anew, and says for
                # a moment that it knows less than this client does.
                if error.args[0].name() not in UNSETTLED or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _end_offsets(self, topic: str) -> dict[int, int]:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        partitions = self._admin.list_topics(topic, timeout=LIMIT).topics[topic].partitions
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}
        answers = self._admin.list_offsets(asked)
        ends = {one.partition: answer.result(LIMIT).offset for one, answer in answers.items()}
        return dict(sorted(ends.items()))

    def drop_before(self, topic: str, partition: int, offset: int) -> None:
        """What retention does in time: records before the offset are gone."""
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(topic, partition, offset)]
        for answer in self._admin.delete_records(asked).values():
            answer.result(LIMIT)

    @cached_property
    def _admin(self) -> Any:
        """Kept: a client that is collected takes its pending answers with it."""
        return self._client()

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        # Its log would print every refused connection while the broker starts.
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            return bool(self._client().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _format(self, properties: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # With "=": an id may begin with a dash.
        tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}"]
        tool += ["--config", str(properties)]
        done = subprocess.run(
            java(self._jars, *tool), capture_output=True, text=True, timeout=READY_WITHIN
        )
        if done.returncode:
            raise RuntimeError(f"Kafka's storage was not formatted:\n{done.stdout}{done.stderr}")

    def _properties(self) -> dict[str, object]:
        controller = f"127.0.0.1:{self._controller_port}"
        clients = f"PLAINTEXT://{self.bootstrap},SASL_PLAINTEXT://{self.guarded}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"{clients},CONTROLLER://{controller}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN_LOGIN} "
            f'user_ann="{LOGIN_PASSWORD}";',
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.folder / "data",
            # One broker is all there is, so nothing can be kept twice.
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
        }


def consumer_groups(jars: tuple[Path, ...], *arguments: str) -> str:
    """What kafka-consumer-groups prints."""
    name = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    done = subprocess.run(
        java(jars, name, *arguments), capture_output=True, text=True, timeout=READY_WITHIN
    )
    if done.returncode:
        raise RuntimeError(f"kafka-consumer-groups failed:\n{done.stdout}{done.stderr}")
    return done.stdout
