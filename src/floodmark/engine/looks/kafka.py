"""Kafka: a broker that does not answer, a topic that is not there, offsets it no longer has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.sources import (
    parse_kafka_initial,
    parse_kafka_offset,
    parse_offset_text,
)
from floodmark.engine.broker import Bounds, Broker, Unreachable
from floodmark.engine.look import Objection, Situation
from floodmark.engine.query import Source
from floodmark.errors import FileGone

UNREACHABLE = "kafka-unreachable"
TOPIC = "kafka-topic-missing"
BELOW = "kafka-offset-gone"
ABOVE = "kafka-offset-ahead"
NAMES = (UNREACHABLE, TOPIC, BELOW, ABOVE)
Offsets = Mapping[str, Mapping[int, int]]


def judge(situation: Situation) -> Iterator[Objection]:
    for known_as, source in situation.sources:
        if source.kind != "kafka":
            continue
        needed = next_offsets(situation, known_as)
        topics = sorted({*subscribed(source), *needed})
        servers = source.options.get("kafka.bootstrap.servers", "")
        try:
            with Broker.connect(situation.spark, source.options) as broker:
                bounds = broker.bounds(topics)
        except Unreachable as error:
            yield Objection(
                UNREACHABLE,
                f"Kafka at {servers} is not reachable",
                str(error),
                "Check kafka.bootstrap.servers, and that the broker runs and lets this user in.",
                passing=True,
            )
            continue
        yield from _judge_topics(topics, bounds, servers, needed)
        yield from _judge_offsets(source, bounds, needed)


def subscribed(source: Source) -> list[str]:
    """The topics that the source names; a pattern names none."""
    if "subscribe" in source.options:
        names = (topic.strip() for topic in source.options["subscribe"].split(","))
        return [name for name in names if name]
    try:
        return list(json.loads(source.options.get("assign", "{}")))
    except (ValueError, RecursionError, TypeError):
        return []


def next_offsets(situation: Situation, source: str) -> Offsets:
    """Where the next batch begins: empty for a stream that begins anew."""
    checkpoint = situation.saved.checkpoint
    if checkpoint is None or checkpoint.latest_batch is None:
        return {}
    batch = checkpoint.latest_batch
    if checkpoint.in_flight_batch is not None:
        batch -= 1
    if batch < 0:
        return _initial(situation, source)
    return _entry(checkpoint, batch, source)


def _entry(checkpoint: Checkpoint, batch: int, source: str) -> Offsets:
    entry = checkpoint.offsets.get(batch)
    text = entry.of(source) if entry else None
    return {} if text is None else parse_kafka_offset(parse_offset_text(text))


def _initial(situation: Situation, source: str) -> Offsets:
    try:
        return parse_kafka_initial(situation.files.read(f"{SOURCES}/{source}/0")).offset
    except FileGone:
        return {}


def _judge_topics(
    topics: list[str], bounds: Mapping[str, Bounds], servers: str, needed: Offsets
) -> Iterator[Objection]:
    for topic in topics:
        if topic in bounds:
            continue
        went_on = topic in needed
        yield Objection(
            TOPIC,
            f"Kafka at {servers} has no topic {topic!r}",
            "The checkpoint goes on in it: it was deleted since, or this is another cluster."
            if went_on
            else "Spark would wait or fail without a word of it.",
            "Point the source at the cluster that has it."
            if went_on
            else "Create it first, or correct the name.",
        )


def _judge_offsets(
    source: Source, bounds: Mapping[str, Bounds], needed: Offsets
) -> Iterator[Objection]:
    skips = source.options.get("failondataloss", "true").lower() == "false"
    then = "skips them silently (failOnDataLoss is false)" if skips else "fails on its first batch"
    for topic, partitions in needed.items():
        for partition, offset in partitions.items():
            found = bounds.get(topic, {}).get(partition)
            if found is None:
                continue
            earliest, latest = found
            where = f"{topic}, partition {partition}"
            if offset < earliest:
                yield Objection(
                    BELOW,
                    f"Kafka no longer has {where} from offset {offset} on: its earliest is "
                    f"{earliest}, so {earliest - offset} records are gone",
                    f"Retention removed them before the stream had read them. Spark {then}.",
                    "Bring the records back if another place has them. To go on with what is "
                    'left, set .option("failOnDataLoss", "false") as well.',
                )
            elif offset > latest:
                yield Objection(
                    ABOVE,
                    f"the checkpoint is at offset {offset} of {where}, and Kafka's latest is "
                    f"{latest}",
                    f"The topic was deleted and made again, or this is another cluster. Spark "
                    f"{then}.",
                    "Point the source at the cluster that the checkpoint was made with, or "
                    "begin with a new checkpoint.",
                )
