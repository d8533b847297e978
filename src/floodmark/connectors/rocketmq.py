"""Reads offsets of Apache RocketMQ: topic → broker → queue → the next offset to read. Pure. Pure.

`{"orders":{"broker-a":{"0":23,"1":41}}}` (RocketMQSourceOffset of rocketmq-spark).
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.kafka.offset import is_kafka_form
from floodmark.connectors.source import Recognised, SourceKind, Traces, arrow

_QUEUES_SHOWN = 6


class RocketMq(SourceKind):
    name = "rocketmq"
    named_parts = ("topic", "broker", "queue")
    no_option = "Nobody has tried RocketMQ's startingOffsets with these offsets."

    def recognise(self, traces: Traces) -> Recognised | None:
        offset = traces.offset
        if isinstance(offset, dict) and offset and all(map(is_kafka_form, offset.values())):
            why = "topics with brokers, queues and offsets"
            return self.possible(why)
        return None

    def explain(self, end: Any, start: Any) -> list[str]:
        before = self.parts(start) or {} if isinstance(start, dict) else {}
        lines = []
        for topic in end:
            queues = [(part, at) for part, at in self.parts({topic: end[topic]}).items()]
            shown = [
                f"{part[1]} {part[2]}: {arrow(_text(before.get(part)), str(at))}"
                for part, at in queues[:_QUEUES_SHOWN]
            ]
            more = len(queues) - len(shown)
            lines.append("   ".join([topic, *shown, *([f"… and {more} more"] if more else [])]))
        return lines

    def parts(self, offset: Any) -> dict[tuple[str, ...], Any]:
        return {
            (topic, broker, queue): at
            for topic, brokers in offset.items()
            for broker, queues in brokers.items()
            for queue, at in queues.items()
        }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


KIND = RocketMq()
