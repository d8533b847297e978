"""A stream's place in another Kafka cluster, found by the times of its records.

The batch's own time is when it was planned; a stream that lags has records before it that are
older. The first record that is not read yet has a time as well, and the old cluster knows it:
in a cluster that has the same records in the same order, nothing that is not read lies before
the first record of that time.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from floodmark.changes.sources.out_of_reach import SKIPS
from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.checkpoint.relative_path import shown
from floodmark.checkpoint.text import moment
from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.connectors.source import SourceOffset, render_json
from floodmark.errors import WouldLose, WrongUse

if TYPE_CHECKING:
    from floodmark.changes.carry.resume_point import UpgradeOptions
    from floodmark.checkpoint.outside import Bounds
    from floodmark.connectors.kafka.live import Cluster

Found = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""source → offset, and notes for the plan."""


def by_record_time(
    sources: Sequence[SourceOffset],
    renamed: Mapping[str, str],
    old: Cluster,
    new: Cluster,
    options: UpgradeOptions,
) -> Found:
    moved: list[tuple[str, str]] = []
    doubts: list[str] = []
    for source in sources:
        place: dict[str, dict[str, int]] = {}
        for topic, partitions in parse_kafka_offset(source.offset).items():
            times, unclear = _unread_since(old, topic, partitions)
            doubts += unclear
            name = renamed.get(topic, topic)
            found, unclear = _positions(new, name, times)
            doubts += unclear
            place[name] = {str(partition): at for partition, at in sorted(found.items())}
        moved.append((source.id, render_json(place)))
    if doubts and SKIPS not in options.accept:
        raise WouldLose(
            "--by-time: records may be left out",
            "\n".join(doubts),
            f"Accept it by name: --accept {SKIPS}. Or give the offsets yourself: "
            "floodmark rewind NEW --to-offsets FILE.",
        )
    note = (
        f"Kafka at {new.bootstrap} is read from the time of the first record of each partition "
        f"that was not read at {old.bootstrap}, or of the last that was: records of those very "
        "times may come twice."
    )
    return tuple(moved), (note, *(f"MAY BE LEFT OUT: {words}." for words in doubts))


def _unread_since(
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


def _positions(
    new: Cluster, topic: str, times: Mapping[int, int | None]
) -> tuple[dict[int, int], list[str]]:
    bounds = _require_topic(new, topic)
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


def _require_topic(new: Cluster, topic: str) -> Mapping[int, Bounds]:
    bounds = new.bounds(topic)
    if not bounds:
        raise WrongUse(
            f"--by-time: Kafka at {new.bootstrap} has no topic {topic}",
            do="Say what it is called there: --map-topic OLD=NEW.",
        )
    return bounds


def by_batch_time(
    entry: OffsetEntry,
    batch: int,
    sources: Sequence[SourceOffset],
    renamed: Mapping[str, str],
    new: Cluster,
    options: UpgradeOptions,
    noted: str | None = None,
) -> Found:
    """Without the old cluster only the time of the batch is known: a backlog is older."""
    if entry.metadata is None:
        raise WrongUse(
            f"--by-time: batch {batch} has no time",
            "Spark 2.1 wrote none.",
            "Give the offsets yourself: floodmark rewind NEW --to-offsets FILE.",
        )
    time_ms = entry.metadata.batch_timestamp_ms
    moved = []
    for source in sources:
        place: dict[str, dict[str, int]] = {}
        for topic in parse_kafka_offset(source.offset):
            name = renamed.get(topic, topic)
            _require_topic(new, name)
            found = sorted(new.at_time(name, time_ms).items())
            place[name] = {str(partition): at for partition, at in found}
        moved.append((source.id, render_json(place)))
    if SKIPS not in options.accept:
        raise WouldLose(
            "--by-time: the times of the records are not known, only that of the batch",
            f"Batch {batch} was planned at {moment(time_ms)}. Records that were older then and not "
            "read yet, as of a stream that lags, would be left out.",
            "Name the cluster that the stream has read, and it is asked: --old-kafka "
            f"{'HOST:PORT' if noted is None else shlex.quote(shown(noted))}. Or accept it by name: "
            f"--accept {SKIPS}.",
        )
    note = (
        f"Kafka at {new.bootstrap} is read from the time of batch {batch}, {moment(time_ms)}: "
        "records near that time may come twice; OLDER RECORDS THAT WERE NOT READ YET ARE LEFT OUT."
    )
    return tuple(moved), (note,)
