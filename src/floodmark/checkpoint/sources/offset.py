"""What an offset means to the source that wrote it; its kind is told by `source_kinds`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.sources.kinds import (
    SourceKind,
    is_partition_offsets,
    kind_of,
    kind_of_initial,
)
from floodmark.checkpoint.text import (
    decode,
    is_too_deep,
    long_of,
    parse_json_object,
    parse_version,
    shorten,
)
from floodmark.errors import MalformedFile
from floodmark.wire import compact_json


@dataclass(frozen=True)
class SourceOffset:
    """One source's place in one batch."""

    id: str
    kind: SourceKind
    offset: Any
    """The offset as JSON data; a text that is not JSON stays a string; None: nothing yet."""
    text: str | None
    """As the source wrote it."""


@dataclass(frozen=True)
class DeltaOffset:
    reservoir_id: str
    reservoir_version: int
    index: int
    is_starting_version: bool
    source_version: int


# Delta's special places inside a version. -1 (and -100, as later releases hold it in
# memory) is before its first file; -20 and -19 stand at and right after a schema change.
BASE_INDEXES = frozenset({-1, -100})
METADATA_CHANGE_INDEX = -20
POST_METADATA_CHANGE_INDEX = -19
_NEWEST_DELTA_SOURCE = 3
_EPOCH_MS = re.compile("[0-9]{1,18}")
# Python's json.dumps writes a Python source's NaN, which is not JSON: it comes out as text.
_DECODER = json.JSONDecoder(parse_constant=str)


def read_source_offset(source: str, text: str | None, initial: bytes | None = None) -> SourceOffset:
    """The offset with its meaning. `initial` is the content of `sources/<id>/0`, if known."""
    if text is None:
        return SourceOffset(source, kind_of_initial(initial), None, None)
    value = parse_offset_text(text)
    return SourceOffset(source, kind_of(value, initial, text), value, text)


def parse_offset_text(text: str) -> Any:
    if is_too_deep(text):
        raise MalformedFile(f"the offset is nested too deeply: {shorten(text)!r}")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        if text[:1] in "{[" and text:
            raise MalformedFile(f"the offset is not JSON: {shorten(text)!r}") from None
        return text


def parse_kafka_offset(offset: Any) -> dict[str, dict[int, int]]:
    """topic → partition → the next offset to read."""
    if not isinstance(offset, dict) or not all(map(is_partition_offsets, offset.values())):
        raise MalformedFile(f"not a Kafka offset: {shorten(repr(offset))}")
    return {
        topic: {int(partition): at for partition, at in partitions.items()}
        for topic, partitions in offset.items()
    }


def parse_delta_offset(offset: Any) -> DeltaOffset:
    if not isinstance(offset, dict) or not isinstance(offset.get("reservoirId"), str):
        raise MalformedFile(f"not a Delta offset: {shorten(repr(offset))}")
    source_version = long_of(offset, "sourceVersion", "the Delta offset")
    if source_version not in (1, _NEWEST_DELTA_SOURCE):
        raise MalformedFile(
            f"Delta offset of sourceVersion {source_version}; "
            f"this floodmark reads 1 and {_NEWEST_DELTA_SOURCE}"
        )
    return DeltaOffset(
        offset["reservoirId"],
        long_of(offset, "reservoirVersion", "the Delta offset"),
        long_of(offset, "index", "the Delta offset"),
        offset.get("isStartingVersion") is True,
        source_version,
    )


def parse_log_offset(offset: Any) -> int:
    """The file source's offset: the newest entry of its own log, not a batch id."""
    if type(offset) is int:  # 2.0 and 2.1 wrote the bare number
        return offset
    if not isinstance(offset, dict):
        raise MalformedFile(f"not a file source's offset: {shorten(repr(offset))}")
    return long_of(offset, "logOffset", "the file source's offset")


def render_json(value: Any) -> str:
    """JSON as Spark's own writers space it."""
    return compact_json(value)


@dataclass(frozen=True)
class KafkaInitialOffset:
    """`sources/<id>/0`: where batch 0 began. Written once."""

    lead: bytes
    """One byte: NUL since 2.1.1, the JSON's length in 2.1.0; every reader skips it."""
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


def parse_rate_initial(data: bytes) -> int:
    """When the rate source was created, in ms: its offsets are seconds since then."""
    line, _, body = decode(data).partition("\n")
    parse_version(line, 1)
    if not _EPOCH_MS.fullmatch(body.strip()):
        raise MalformedFile(f"the rate source's start is {shorten(body)!r}, not a time in ms")
    return int(body)
