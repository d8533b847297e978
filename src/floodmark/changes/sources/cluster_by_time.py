"""Finds offsets in another Kafka cluster by time, for `upgrade --by-time`.

The old cluster knows the times of the records (`connectors/kafka/by_time.py`). Without it, only
the time of the batch is known, and a stream that lags has older records to read.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from floodmark.changes.sources.out_of_reach import SKIPS
from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.checkpoint.relative_path import shown
from floodmark.checkpoint.text import moment
from floodmark.connectors.kafka.by_time import positions_at, require_topic, unread_since
from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.connectors.source import SourceOffset, render_json
from floodmark.errors import WouldLose, WrongUse

if TYPE_CHECKING:
    from floodmark.changes.carry.resume_point import UpgradeOptions
    from floodmark.connectors.kafka.live import Cluster

Found = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""The offset for each source, and notes for the plan."""


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
            times, unclear = unread_since(old, topic, partitions)
            doubts += unclear
            name = renamed.get(topic, topic)
            found, unclear = positions_at(new, name, times)
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


def by_batch_time(
    entry: OffsetEntry,
    batch: int,
    sources: Sequence[SourceOffset],
    renamed: Mapping[str, str],
    new: Cluster,
    options: UpgradeOptions,
    noted: str | None = None,
) -> Found:
    """Use the time of the batch, without the old cluster; unread records may be older."""
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
            require_topic(new, name)
            found = sorted(new.at_time(name, time_ms).items())
            place[name] = {str(partition): at for partition, at in found}
        moved.append((source.id, render_json(place)))
    if SKIPS not in options.accept:
        raise WouldLose(
            "--by-time: the times of the records are not known, only that of the batch",
            f"Batch {batch} was planned at {moment(time_ms)}. Older records that were not read "
            f"yet, "
            "as in a stream that lags, would be left out.",
            "To ask the cluster that the stream has read: --old-kafka "
            f"{'HOST:PORT' if noted is None else shlex.quote(shown(noted))}. Or accept it by name: "
            f"--accept {SKIPS}.",
        )
    note = (
        f"Kafka at {new.bootstrap} is read from the time of batch {batch}, {moment(time_ms)}: "
        "records near that time may come twice; OLDER RECORDS THAT WERE NOT READ YET ARE LEFT OUT."
    )
    return tuple(moved), (note,)
