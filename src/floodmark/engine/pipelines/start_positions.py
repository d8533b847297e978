"""Holds the positions where a stream begins if its checkpoint is new: a pipeline's `start`.

A start file holds positions from an upgrade:

    {"floodmark": "start", "version": 1, "sources": [
      {"kind": "kafka", "offsets": {"orders": {"0": 416, "1": 563}}},
      {"kind": "delta", "table": "data/orders", "version": 8, "index": -1}]}

`table` may be left out where there is one Delta source. The bare object that
`floodmark offsets --starting-offsets` prints is also a start file. If the checkpoint already
has a batch, Spark ignores these positions and continues from the batch's offsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.connectors.delta.offset import BASE_INDEXES
from floodmark.connectors.kafka.offset import is_kafka_form
from floodmark.connectors.source import render_json
from floodmark.errors import MalformedFile, WrongUse
from floodmark.storage.user_code import code_bytes

VERSION = 1


@dataclass(frozen=True)
class KafkaStart:
    offsets: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class DeltaStart:
    table: str | None
    version: int
    index: int


@dataclass(frozen=True)
class Start:
    """Gives a pipeline the reader's starting options."""

    sources: tuple[KafkaStart | DeltaStart, ...] = ()
    origin: str = ""

    def kafka(self, *topics: str, otherwise: str = "earliest") -> str:
        """Return the value of startingOffsets for these topics."""
        if not topics:
            raise WrongUse("start.kafka() names no topic", do='Write start.kafka("orders").')
        found: dict[str, Mapping[str, int]] = {}
        for source in self.sources:
            if isinstance(source, KafkaStart):
                found.update({t: source.offsets[t] for t in topics if t in source.offsets})
        if not found:
            return otherwise
        missing = [topic for topic in topics if topic not in found]
        if missing:
            raise WrongUse(
                f"{self.origin} has offsets for {', '.join(found)}, not for {', '.join(missing)}",
                "Kafka's startingOffsets must name every topic of the stream.",
                "Add the topic to the start file; -2 is the earliest offset, -1 the latest.",
            )
        return render_json({topic: dict(partitions) for topic, partitions in found.items()})

    def delta(self, table: str | None = None, otherwise: str | None = None) -> dict[str, str]:
        """Return options for the reader: `.options(**start.delta("data/orders"))`.

        `otherwise` is a startingVersion ("latest", "7"); None reads the whole table first.
        """
        places = [source for source in self.sources if isinstance(source, DeltaStart)]
        chosen = [place for place in places if place.table == table] or [
            place for place in places if place.table is None or table is None
        ]
        if not chosen:
            return {} if otherwise is None else {"startingVersion": otherwise}
        if len(chosen) > 1:
            raise WrongUse(
                f"{self.origin}: {len(chosen)} Delta sources fit",
                do='Name the table: start.delta("data/orders"), and "table" in the start file.',
            )
        return _delta_option(chosen[0], self.origin)


def _delta_option(place: DeltaStart, origin: str) -> dict[str, str]:
    if place.index not in BASE_INDEXES:
        raise WrongUse(
            f"{origin}: the Delta source stopped inside version {place.version}, after file "
            f"{place.index}",
            "startingVersion begins at a whole version, so those files would be read twice.",
            "`floodmark upgrade` carries the exact position over in a new checkpoint.",
        )
    return {"startingVersion": str(place.version)}


def read_start(path: str | Path) -> Start:
    try:
        data = code_bytes(Path(path))
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot read the start file ({error.strerror})",
            do="`floodmark offsets CP --starting-offsets > start.json` writes one.",
        ) from None
    return parse_start(data, str(path))


def parse_start(data: bytes, origin: str = "start file") -> Start:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _malformed(origin, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise _malformed(origin, "not a JSON object")
    if value.get("floodmark") == "start":
        return Start(_sources(value, origin), origin)
    if is_kafka_form(value):
        return Start((KafkaStart(value),), origin)
    if type(value.get("startingVersion")) is int:
        return Start((_delta({"version": value["startingVersion"], **value}, origin),), origin)
    raise _malformed(origin, 'it has no "floodmark": "start", and is not startingOffsets')


def _sources(value: dict[str, Any], origin: str) -> tuple[KafkaStart | DeltaStart, ...]:
    if value.get("version") != VERSION:
        raise _malformed(
            origin, f"version {value.get('version')!r}; this floodmark reads {VERSION}"
        )
    sources = value.get("sources")
    if not isinstance(sources, list) or not all(isinstance(source, dict) for source in sources):
        raise _malformed(origin, '"sources" is not a list of objects')
    return tuple(_source(source, origin) for source in sources)


def _source(source: dict[str, Any], origin: str) -> KafkaStart | DeltaStart:
    kind = source.get("kind")
    if kind == "kafka":
        offsets = source.get("offsets")
        if not isinstance(offsets, dict) or not is_kafka_form(offsets):
            raise _malformed(origin, '"offsets" is not {topic: {partition: offset}}')
        return KafkaStart(offsets)
    if kind == "delta":
        return _delta(source, origin)
    raise _malformed(origin, f"a source's kind is {kind!r}, not kafka or delta")


def _delta(source: dict[str, Any], origin: str) -> DeltaStart:
    version, index, table = source.get("version"), source.get("index", -1), source.get("table")
    if type(version) is not int or type(index) is not int or version < 0:
        raise _malformed(origin, "a Delta source's version and index are not whole numbers")
    if table is not None and not isinstance(table, str):
        raise _malformed(origin, "a Delta source's table is not a path")
    return DeltaStart(table, version, index)


def _malformed(origin: str, reason: str) -> MalformedFile:
    return MalformedFile(
        f"{origin}: not a start file",
        reason,
        '{"floodmark": "start", "version": 1, "sources": [{"kind": "kafka", '
        '"offsets": {"orders": {"0": 416}}}]} is one.',
    )
