"""The commit log: one file per finished batch, written after the sink.

If a batch is in the offset log but not here, Spark planned it and may have done a part of it. Spark
runs it again on restart. docs/format.md describes the formats v1 to v3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from floodmark.checkpoint.text import (
    compact_json,
    decode,
    long_of,
    parse_json_object,
    shorten,
    split_version,
)
from floodmark.errors import MalformedFile

NEWEST_VERSION = 3

StateIds = Mapping[int, tuple[tuple[str, ...], ...]]
"""operator → partition → the unique id of each store's files (checkpoint format 2)."""


@dataclass(frozen=True)
class CommitEntry:
    version: int
    next_batch_watermark_ms: int
    state_unique_ids: StateIds
    sinks: Mapping[str, Mapping[str, Any]]
    """v3's sinkMetadataMap: the sinks the query has had, by name."""
    text: str


_AS_SPARK_WRITES = re.compile(r'\{"nextBatchWatermarkMs":(-?\d{1,18})\}')
_NO_IDS: StateIds = MappingProxyType({})
_NO_SINKS: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


@lru_cache(maxsize=16)
def parse_commit(data: bytes) -> CommitEntry:
    # Without a watermark every commit of a long log has the same bytes: one entry for all.
    text = decode(data)
    version, rest = split_version(text, NEWEST_VERSION)
    # Spark reads the second line and no more; a missing one means {}.
    body = rest.split("\n", 1)[0]
    usual = _AS_SPARK_WRITES.fullmatch(body)
    if usual:
        return CommitEntry(version, int(usual[1]), _NO_IDS, _NO_SINKS, text)
    fields = parse_json_object(body, "the commit") if body.strip() else {}
    return CommitEntry(
        version,
        long_of(fields, "nextBatchWatermarkMs", "the commit", 0),
        _state_ids(fields.get("stateUniqueIds")),
        _sinks(fields.get("sinkMetadataMap")),
        text,
    )


def render_commit(entry: CommitEntry) -> bytes:
    return entry.text.encode()


def with_state_ids(entry: CommitEntry, ids: StateIds | None) -> CommitEntry:
    """Return the entry with other unique ids; with None it has none, as state format 1 needs."""
    body = entry.text.partition("\n")[2].split("\n", 1)[0]
    fields = parse_json_object(body, "the commit") if body.strip() else {}
    fields.pop("stateUniqueIds", None)
    if ids is not None:
        fields["stateUniqueIds"] = {
            str(operator): [list(stores) for stores in partitions]
            for operator, partitions in ids.items()
        }
    # v3 is there for its sinks, with unique ids or without.
    version = 3 if entry.version == 3 else 1 if ids is None else 2
    text = f"v{version}\n{compact_json(fields)}"
    return parse_commit(text.encode())


def _state_ids(value: Any) -> StateIds:
    if value is None:
        return _NO_IDS
    try:
        return MappingProxyType(
            {int(operator): _partitions(partitions) for operator, partitions in value.items()}
        )
    except (AttributeError, TypeError, ValueError):
        raise MalformedFile(
            f"stateUniqueIds is not a map of operators: {shorten(repr(value))}"
        ) from None


def _partitions(value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list) or not all(
        isinstance(stores, list) and all(isinstance(store, str) for store in stores)
        for stores in value
    ):
        raise TypeError
    return tuple(tuple(stores) for stores in value)


def _sinks(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if value is None:
        return _NO_SINKS
    if not isinstance(value, dict) or not all(isinstance(sink, dict) for sink in value.values()):
        raise MalformedFile(f"sinkMetadataMap is not a map of sinks: {shorten(repr(value))}")
    return MappingProxyType({name: MappingProxyType(sink) for name, sink in value.items()})
