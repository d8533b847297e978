"""Reads Kafka's offsets: topic → partition → the next offset to read. Pure.

`{"orders":{"0":23,"1":41}}` (KafkaSourceOffset, JsonUtils.partitionOffsets). The option
startingOffsets takes the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from floodmark.checkpoint.text import decode, parse_json_object, parse_version, shorten
from floodmark.connectors.source import (
    LONGS,
    Move,
    Recognised,
    SourceKind,
    SourceOffset,
    StartOption,
    Traces,
    arrow,
    parse_offset_text,
    render_json,
)
from floodmark.errors import MalformedFile

# A partition is a Java int and an offset a long; other numbers belong to another source.
_PARTITION = re.compile("0|[1-9][0-9]{0,9}")
_LAST_PARTITION = 2**31 - 1
_PARTITIONS_SHOWN = 6
_PARTITIONS_REACHED = 4
_NEGATIVE = (
    "The offset has a negative number, which is no place in a log: in startingOffsets, -1 is the "
    "end of the partition and -2 its beginning."
)
_NOT_HELD = "-1 and -2 are values of startingOffsets; a checkpoint holds real offsets."


SERVERS = "kafka.bootstrap.servers"
"""The option that names the brokers."""


class KafkaForm(SourceKind):
    """A kind with offsets in Kafka's form: topic → partition → number."""

    def explain(self, end: Any, start: Any) -> list[str]:
        return [
            f"{topic}   {_advance(partitions, (start or {}).get(topic, {}))}"
            for topic, partitions in end.items()
        ]

    def reached(self, end: Any) -> str:
        return ", ".join(f"{topic} {_reached(partitions)}" for topic, partitions in end.items())

    def parts(self, offset: Any) -> dict[tuple[str, ...], Any] | None:
        return {
            (topic, partition): at
            for topic, partitions in offset.items()
            for partition, at in partitions.items()
        }

    def went_back(self, was: Any, now: Any) -> Iterator[tuple[str, str, str]]:
        for topic in was.keys() & now.keys():
            for partition in sorted(was[topic].keys() & now[topic].keys(), key=int):
                before, after = was[topic][partition], now[topic][partition]
                if after < before:
                    yield f", {topic} partition {partition}", str(before), str(after)

    def reads_another(self, was: Any, now: Any) -> str | None:
        if was and not was.keys() & now.keys():
            return f"reads {', '.join(now)}, and read {', '.join(was)} before"
        return None

    def topics(self, offset: Any) -> tuple[str, ...]:
        return tuple(offset) if is_kafka_form(offset) else ()

    def renamed(self, offset: Any, names: Mapping[str, str]) -> Any:
        return {names.get(topic, topic): at for topic, at in offset.items()}


class Kafka(KafkaForm):
    name = "kafka"
    looks_like = ("eventhubs",)
    formats = frozenset({"eventhubs"})  # their offsets look the same
    doubt = (
        "Event Hubs' offsets look the same. If the source is Event Hubs, give --source-kind "
        "{}=eventhubs."
    )
    named_parts = ("topic", "partition")
    has_topics = True
    start_files = ("0",)
    begins_once = True
    asked_with = "--kafka HOST:PORT"
    can_be_asked = True
    tells_lag = True
    start_rules = (
        "kafka-unreachable",
        "kafka-topic-missing",
        "kafka-offset-gone",
        "kafka-offset-ahead",
    )

    def recognise(self, traces: Traces) -> Recognised | None:
        if not is_kafka_form(traces.offset) or has_negative(traces.offset):
            return None
        if traces.began_below_zero or not all(traces.offset.values()):
            return None
        if traces.has_lead_byte:
            why = "topics and partitions, and sources/<id>/0 begins as Kafka writes it"
            return self.probable(why, alone=True)
        why = "topics with partitions and offsets"
        return self.possible(why, alone=not traces.may_be_pythons)

    def began(self, traces: Traces) -> bool:
        return traces.has_lead_byte

    def starting_option(self, source: SourceOffset) -> tuple[StartOption | None, str | None]:
        text = source.text or ""
        if is_kafka_form(source.offset) and has_negative(source.offset):
            return None, _NEGATIVE
        return StartOption("startingOffsets", text, text), None

    def compare(self, was: SourceOffset, text: str, now: Any) -> Move:
        before, after = parse_kafka_offset(was.offset), parse_kafka_offset(now)
        forward, back = [], False
        for topic, partitions in after.items():
            for partition, at in partitions.items():
                stood = before[topic][partition]
                back = back or at < stood
                if at > stood:
                    forward.append(
                        f"{at - stood:,} records of {topic} partition {partition}, from offset "
                        f"{stood} to {at - 1}"
                    )
        return Move(back, tuple(forward))

    def count(self, start: Any, end: Any) -> int | None:
        if not isinstance(start, dict) or not isinstance(end, dict):
            return None
        starts, ends = parse_kafka_offset(start), parse_kafka_offset(end)
        places = [(topic, partition) for topic, at in ends.items() for partition in at]
        # A new partition was read from its beginning, which only the broker knows.
        if any(partition not in starts.get(topic, {}) for topic, partition in places):
            return None
        return sum(ends[topic][partition] - starts[topic][partition] for topic, partition in places)

    def first_offset(self, initial: bytes | None) -> Any:
        if initial is None:
            return None
        return {
            topic: {str(partition): at for partition, at in partitions.items()}
            for topic, partitions in parse_kafka_initial(initial).offset.items()
        }

    def check_initial(self, data: bytes) -> None:
        parse_kafka_initial(data)

    def seed(self, source: SourceOffset) -> bytes | None:
        return b"\0v1\n" + (source.text or "").encode()

    def start_entry(self, source: SourceOffset) -> dict[str, Any] | None:
        return {"kind": self.name, "offsets": source.offset}

    def no_place(self, offset: Any) -> tuple[str, str] | None:
        return place_below(0, offset, _NOT_HELD)

    def renamed_initial(self, data: bytes, names: Mapping[str, str]) -> bytes:
        initial = parse_kafka_initial(data)
        if not any(topic in names for topic in initial.offset):
            return render_kafka_initial(initial)
        text = render_json(self.renamed(parse_offset_text(initial.text), names))
        return render_kafka_initial(replace(initial, text=text))


def is_kafka_form(value: Any) -> bool:
    """Whether the value is topic → partition → number. startingOffsets adds -1 and -2."""
    return (
        isinstance(value, dict) and bool(value) and all(map(_is_partition_offsets, value.values()))
    )


def has_negative(offset: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether a number is negative. Kafka's log has none; Event Hubs' -1 is its beginning."""
    return any(at < 0 for partitions in offset.values() for at in partitions.values())


def place_below(
    first: int, offset: Mapping[str, Mapping[str, int]], why: str
) -> tuple[str, str] | None:
    """Return the first partition whose number is below `first`, and the reason."""
    for topic, partitions in offset.items():
        for partition, at in partitions.items():
            if at < first:
                return f"{topic} partition {partition} is {at}", why
    return None


def _is_partition_offsets(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _are_partitions(tuple(value))
        and {int}.issuperset(map(type, value.values()))
        and min(value.values(), default=0) in LONGS
        and max(value.values(), default=0) in LONGS
    )


@lru_cache(maxsize=64)
def _are_partitions(keys: tuple[str, ...]) -> bool:
    # A topic's partitions are the same in every entry of a long log.
    return all(_PARTITION.fullmatch(key) and int(key) <= _LAST_PARTITION for key in keys)


def parse_kafka_offset(offset: Any) -> dict[str, dict[int, int]]:
    """Return topic → partition → the next offset to read."""
    if not isinstance(offset, dict) or not all(map(_is_partition_offsets, offset.values())):
        raise MalformedFile(f"not a Kafka offset: {shorten(repr(offset))}")
    return {
        topic: {int(partition): at for partition, at in partitions.items()}
        for topic, partitions in offset.items()
    }


@dataclass(frozen=True)
class KafkaInitialOffset:
    """The file `sources/<id>/0`: where batch 0 began. Spark writes it once."""

    lead: bytes
    """One byte: NUL since 2.1.1, the JSON's length in 2.1.0. Every reader skips it."""
    version_line: str | None
    offset: dict[str, dict[int, int]]
    text: str


def parse_kafka_initial(data: bytes) -> KafkaInitialOffset:
    if not data:
        raise MalformedFile("the file is empty")
    text = decode(data[1:])
    version_line = None
    if text.startswith("v"):
        version_line, _, text = text.partition("\n")
        parse_version(version_line, 1)
    offset = parse_kafka_offset(parse_json_object(text, "Kafka's initial offset"))
    return KafkaInitialOffset(data[:1], version_line, offset, text)


def render_kafka_initial(initial: KafkaInitialOffset) -> bytes:
    version = "" if initial.version_line is None else initial.version_line + "\n"
    return initial.lead + (version + initial.text).encode()


def _advance(ends: dict[str, int], starts: dict[str, int]) -> str:
    ordered = sorted(ends.items(), key=lambda item: int(item[0]))
    shown = [
        f"{partition}: {arrow(_number(starts.get(partition)), str(end))}"
        for partition, end in ordered[:_PARTITIONS_SHOWN]
    ]
    if len(ordered) > _PARTITIONS_SHOWN:
        shown.append(f"… and {len(ordered) - _PARTITIONS_SHOWN} more")
    return "   ".join(shown)


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _reached(partitions: dict[str, int]) -> str:
    shown = sorted(partitions.items(), key=lambda item: int(item[0]))[:_PARTITIONS_REACHED]
    more = len(partitions) - len(shown)
    words = " ".join(f"{partition}:{offset}" for partition, offset in shown)
    return f"{words} and {more} more" if more else words


KIND = Kafka()
