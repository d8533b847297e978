"""Reads offsets of Redis streams: stream → consumer group and the id of the last entry. Pure. Pure.

`{"offsets":{"orders":{"groupName":"spark-source","offset":"1543674099961-0"}}}`
(RedisSourceOffset of spark-redis).
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import FormedKind, arrow, has_fields

_FORM = frozenset({"offsets"})
_CONSUMER = frozenset({"groupName", "offset"})


class Redis(FormedKind):
    name = "redis"
    named_parts = ("field", "stream")
    plain_words = True
    told_by = "streams with a consumer group and an entry"
    no_option = (
        "spark-redis' stream.offsets takes these ids; whether the last entry is read again was "
        "not tried."
    )

    def has_form(self, offset: Any) -> bool:
        streams = _streams(offset)
        return bool(streams) and all(has_fields(one, _CONSUMER) for one in streams.values())

    def explain(self, end: Any, start: Any) -> list[str]:
        before = _streams(start)
        return [
            f"{stream}   {arrow(_entry(before.get(stream)), _entry(one))}"
            for stream, one in _streams(end).items()
        ]


def _streams(offset: Any) -> dict[str, Any]:
    streams = offset["offsets"] if has_fields(offset, _FORM) else None
    return streams if isinstance(streams, dict) else {}


def _entry(consumer: Any) -> str | None:
    return str(consumer.get("offset")) if isinstance(consumer, dict) else None


KIND = Redis()
