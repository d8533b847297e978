"""Reads offsets of Azure Event Hubs: sequence numbers in Kafka's form. Pure.

`{"eh":{"0":23,"1":-1}}` (EventHubsSourceOffset of azure-event-hubs-spark): hub → partition → the
next sequence number. -1 stands before the first event; Kafka never writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.connectors.kafka.offset import (
    KafkaForm,
    is_kafka_form,
    parse_kafka_offset,
    place_below,
)
from floodmark.connectors.source import (
    Move,
    Recognised,
    SourceOffset,
    StartOption,
    Traces,
    render_json,
)

_BEFORE_FIRST = -1
_BELOW = "Sequence numbers begin at 0, and -1 is before the first event."


class EventHubs(KafkaForm):
    name = "eventhubs"
    named_parts = ("hub", "partition")

    def recognise(self, traces: Traces) -> Recognised | None:
        if not is_kafka_form(traces.offset) or _lowest(traces.offset) < _BEFORE_FIRST:
            return None
        if traces.began_below_zero:
            why = "Kafka's form, and sources/<id>/0 has a number that Kafka never writes"
            return self.probable(why)
        if _lowest(traces.offset) != _BEFORE_FIRST:
            return None
        why = "Kafka's form with a number that Kafka never writes"
        return self.probable(why) if traces.has_lead_byte else self.possible(why)

    def starting_option(self, source: SourceOffset) -> tuple[StartOption | None, str | None]:
        if is_kafka_form(source.offset) and _lowest(source.offset) < _BEFORE_FIRST:
            return None, "The offset has a number below -1, which is no sequence number."
        form = event_positions(parse_kafka_offset(source.offset))
        return StartOption("eventhubs.startingPositions", form, form), None

    def compare(self, was: SourceOffset, text: str, now: Any) -> Move:
        before, forward, back = self.parts(was.offset) or {}, [], False
        for (hub, partition), at in (self.parts(now) or {}).items():
            stood = before[hub, partition]
            back = back or at < stood
            if at > stood:
                since = "the first" if stood == _BEFORE_FIRST else f"number {stood}"
                forward.append(
                    f"the events of {hub} partition {partition} from {since} to {at - 1}"
                )
        return Move(back, tuple(forward))

    def no_place(self, offset: Any) -> tuple[str, str] | None:
        return place_below(_BEFORE_FIRST, offset, _BELOW)


def _lowest(offset: Mapping[str, Mapping[str, int]]) -> int:
    return min((at for hub in offset.values() for at in hub.values()), default=0)


def event_positions(hubs: Mapping[str, Mapping[int, int]]) -> str:
    """Return the option of the Event Hubs connector: a JSON object whose keys are JSON, too."""
    return render_json(
        {
            render_json({"ehName": hub, "partitionId": partition}): {
                # A sequence number is the next one to read; -1 is before the first event.
                "offset": "-1" if at == _BEFORE_FIRST else None,
                "seqNo": at,
                "enqueuedTime": None,
                "isInclusive": True,
            }
            for hub, partitions in hubs.items()
            for partition, at in partitions.items()
        }
    )


KIND = EventHubs()
