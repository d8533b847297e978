"""Reads offsets of Amazon Kinesis: shards, each with an iterator's type and position. Pure.

`{"metadata":…,"shardId-0":{"iteratorType":…,"iteratorPosition":…}}` (ShardOffsets of Qubole's and
awslabs' connectors), or a list of objects with `shard` (Databricks).
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import Recognised, SourceKind, Traces, arrow, has_fields
from floodmark.errors import MalformedFile

_SHARDS_SHOWN = 6
_OF_NO_SHARD = frozenset({"batchId", "streamName"})
_ITERATORS = {
    "AFTER_SEQUENCE_NUMBER": "after",
    "AT_SEQUENCE_NUMBER": "from",
    "AT_TIMESTAMP": "from the time",
    "TRIM_HORIZON": "from its oldest record",
    "LATEST": "from its newest record",
}


class Kinesis(SourceKind):
    name = "kinesis"
    any_format = True
    named_parts = ("shard",)
    start_files = ("shard-source/*",)
    no_option = "Kinesis' option takes one starting position for all shards, not one for each."

    def recognise(self, traces: Traces) -> Recognised | None:
        offset = traces.offset
        if isinstance(offset, list):
            if offset and all(map(_is_databricks, offset)):
                return self.certain("a list of shards")
        elif isinstance(offset, dict):
            shards = [value for key, value in offset.items() if key != "metadata"]
            if shards and all(map(_is_iterator, shards)):
                return self.certain("shards with an iterator each")
            if not shards and has_fields(offset.get("metadata"), _OF_NO_SHARD):
                return self.certain("a stream's name without a shard")
        return None

    def by_name(self, offset: Any) -> Any:
        if not isinstance(offset, list):
            return offset
        named = {f"{_stream(item)} {item['shard']['shardId']}": item for item in offset}
        if len(named) < len(offset):
            raise MalformedFile("the offset names a shard more than once")
        return named

    def from_names(self, named: Any, held: Any) -> Any:
        return list(named.values()) if isinstance(held, list) else named

    def explain(self, end: Any, start: Any) -> list[str]:
        starts = _shards(start)
        shards = sorted(_shards(end).items())
        lines = [f"{name}   {arrow(starts.get(name), at)}" for name, at in shards[:_SHARDS_SHOWN]]
        more = len(shards) - len(lines)
        lines += [f"… and {more} more shards"] if more else []
        return lines or ["no shard yet"]


def _is_databricks(item: Any) -> bool:
    shard = item.get("shard") if isinstance(item, dict) else None
    return isinstance(shard, dict) and isinstance(shard.get("shardId"), str)


def _is_iterator(shard: Any) -> bool:
    return isinstance(shard, dict) and isinstance(shard.get("iteratorType"), str)


def _shards(offset: Any) -> dict[str, str]:
    """Return shard → where the stream stands in it, in words."""
    if isinstance(offset, dict):
        return {name: _iterator(at) for name, at in offset.items() if name != "metadata"}
    items = offset if isinstance(offset, list) else []
    streams = {_stream(item) for item in items}
    found = {}
    for item in items:
        shard = item["shard"]
        name = str(shard.get("shardId"))
        # Every stream has a shardId-000000000000.
        found[name if len(streams) == 1 else f"{_stream(item)} {name}"] = _sequence(item)
    return found


def _stream(item: Any) -> str:
    return str(item["shard"].get("stream"))


def _iterator(shard: Any) -> str:
    kind, at = str(shard.get("iteratorType")), shard.get("iteratorPosition")
    if kind == "SHARD_END":
        return "closed, read to its end"
    return f"{_ITERATORS.get(kind, kind)} {at or ''}".rstrip()


def _sequence(shard: Any) -> str:
    last = shard.get("lastSeqNum")
    words = "nothing read yet" if last is None else f"up to {last}"
    return f"closed, {words}" if shard.get("closed") is True else words


KIND = Kinesis()
