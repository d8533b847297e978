"""Reads offsets of Apache Pulsar: topic → the bytes of the last message's id. Pure. Pure.

`{"persistent://public/default/orders":[8,10,16,100,24,0]}` (SpecificPulsarOffset): MessageIdData
as protobuf, field 1 the ledger and field 2 the entry; every byte is a signed number.
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import Recognised, SourceKind, Traces, arrow

_LEDGER, _ENTRY = 1, 2
_NEVER = 2**63
_LONGEST = 64  # bytes of a message id; later bytes add nothing


class Pulsar(SourceKind):
    name = "pulsar"
    named_parts = ("topic",)
    going_back = (
        "acknowledges what it has planned, and Pulsar removes acknowledged messages unless the "
        "namespace retains them"
    )
    no_option = (
        "Pulsar's startingOffsets takes these message ids; whether the last message is read again "
        "was not tried."
    )

    def recognise(self, traces: Traces) -> Recognised | None:
        offset = traces.offset
        if not isinstance(offset, dict) or not offset:
            return None
        if all("://" in topic for topic in offset) and all(map(_is_bytes, offset.values())):
            return self.certain("topics with a message id in bytes")
        return None

    def explain(self, end: Any, start: Any) -> list[str]:
        starts = start if isinstance(start, dict) else {}
        return [
            f"{topic}   {arrow(_words(starts[topic]) if topic in starts else None, _words(at))}"
            for topic, at in end.items()
        ]


def _is_bytes(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(byte) is int and -128 <= byte <= 255 for byte in value)
    )


def _words(message: list[int]) -> str:
    fields = _numbers(message)
    if _LEDGER not in fields or _ENTRY not in fields:
        return "a message id that cannot be read"
    ledger, entry = fields[_LEDGER], fields[_ENTRY]
    if ledger >= _NEVER or entry >= _NEVER:  # -1, -1
        return "before the first message"
    if ledger == entry == _NEVER - 1:
        return "the latest message"
    return f"ledger {ledger} entry {entry}"


def _numbers(message: list[int]) -> dict[int, int]:
    """Return field → value of a protobuf of whole numbers; the reading ends at any other type."""
    values, number, shift = [], 0, 0
    for byte in message[:_LONGEST]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            values.append(number)
            number, shift = 0, 0
    fields = {}
    for tag, value in zip(values[::2], values[1::2], strict=False):
        if tag & 7:
            break
        fields[tag >> 3] = value
    return fields


KIND = Pulsar()
