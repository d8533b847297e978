"""Finds a stream's place in another Kafka cluster by the times of its records.

The first record that is not read yet has a time, and the old cluster knows it: in a cluster that
has the same records in the same order, nothing that is not read lies before the first record of
that time.
"""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.checkpoint.live_answers import Bounds
from floodmark.connectors.kafka.live import Cluster
from floodmark.errors import WrongUse


def unread_since(
    old: Cluster, topic: str, partitions: Mapping[int, int]
) -> tuple[dict[int, int | None], list[str]]:
    """The time of the first record that is not read, by partition; None: it never had one."""
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
            doubts.append(f"{name} has nothing before offset {there.earliest} any more")
        read_to_end = at == there.end
        if read_to_end and there.end == there.earliest:
            if at > 0:
                doubts.append(f"{name} is empty, so the time of its last record is not known")
            times[partition] = None
            continue
        # All is read: the last record's time, for the ones to come are after it.
        offset = at - 1 if read_to_end else max(at, there.earliest)
        times[partition] = old.record_time(topic, partition, offset)
        if times[partition] is None:
            doubts.append(f"{name} gave no record from offset {offset} on")
    return times, doubts


def positions_at(
    new: Cluster, topic: str, times: Mapping[int, int | None]
) -> tuple[dict[int, int], list[str]]:
    """The place of each partition at its time, and what may be left out, in words."""
    bounds = require_topic(new, topic)
    doubts = []
    if bounds.keys() != times.keys():
        # Spread otherwise, a record may lie in any partition: from the earliest time on.
        known = [at for at in times.values() if at is not None]
        times = dict.fromkeys(bounds, min(known, default=None))
        doubts.append(
            f"{topic} has {len(bounds)} partitions at {new.bootstrap} and another number before: "
            "records that are older than those before them may be left out"
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
            do="Say what it is called there: --map-topic OLD=NEW.",
        )
    return bounds
