"""Finds a stream's place in another Kafka cluster by the times of its records.

The old cluster knows the time of the first unread record. If the other cluster has the same records
in the same order, no unread record lies before its first record of that time.
"""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.checkpoint.live_answers import Bounds
from floodmark.connectors.kafka.live import Cluster
from floodmark.errors import WrongUse


def unread_since(
    old: Cluster, topic: str, partitions: Mapping[int, int]
) -> tuple[dict[int, int | None], list[str]]:
    """Return the time of the first unread record by partition; None if there never was a record."""
    bounds = old.bounds(topic)
    times: dict[int, int | None] = {}
    doubts = []
    for partition, at in partitions.items():
        name = f"{topic} partition {partition} of {old.bootstrap}"
        there = bounds.get(partition)
        if there is None or at > there.end:
            doubts.append(f"{name} has no offset {at}, so the times of its records are not known")
            times[partition] = None
            continue
        if at < there.earliest:
            doubts.append(f"{name} no longer has records before offset {there.earliest}")
        read_to_end = at == there.end
        if read_to_end and there.end == there.earliest:
            if at > 0:
                doubts.append(f"{name} is empty, so the time of its last record is not known")
            times[partition] = None
            continue
        # Everything is read: later records come after the time of the last one.
        offset = at - 1 if read_to_end else max(at, there.earliest)
        times[partition] = old.record_time(topic, partition, offset)
        if times[partition] is None:
            doubts.append(f"{name} gave no record from offset {offset} on")
    return times, doubts


def positions_at(
    new: Cluster, topic: str, times: Mapping[int, int | None]
) -> tuple[dict[int, int], list[str]]:
    """Return each partition's place at its time, and in words what may be left out."""
    bounds = require_topic(new, topic)
    doubts = []
    if bounds.keys() != times.keys():
        # With another number of partitions a record may be in any: begin at the earliest time.
        known = [at for at in times.values() if at is not None]
        times = dict.fromkeys(bounds, min(known, default=None))
        doubts.append(
            f"{topic} has {len(bounds)} partitions at {new.bootstrap}, and had another number "
            "before: records that are older than the records before them may be left out"
        )
    asked = {partition: at for partition, at in times.items() if at is not None}
    found = new.at_times(topic, asked, bounds)
    begin = {partition: there.earliest for partition, there in bounds.items()}
    return {**begin, **found}, doubts


def require_topic(new: Cluster, topic: str) -> Mapping[int, Bounds]:
    bounds = new.bounds(topic)
    if not bounds:
        raise WrongUse(
            f"--by-time: Kafka at {new.bootstrap} has no topic {topic}",
            do="Give the topic's name there: --map-topic OLD=NEW.",
        )
    return bounds
