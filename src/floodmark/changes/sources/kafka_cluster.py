"""Asks a Kafka cluster whether it still has the records after a checkpoint's offsets.

After retention, in a recreated topic, or in another cluster, the offsets point at nothing or at
other records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.resume_point import UpgradeOptions, choose_resume_point
from floodmark.changes.sources.cluster_by_time import by_batch_time, by_record_time
from floodmark.changes.sources.earlier_positions import noted_options
from floodmark.changes.sources.out_of_reach import Reach, require_reach
from floodmark.checkpoint.live_answers import Bounds
from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.kafka.live import Cluster
from floodmark.connectors.kafka.offset import SERVERS, parse_kafka_offset
from floodmark.connectors.kafka.reach import Topics, added_partitions, shortfalls
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.errors import WrongUse
from floodmark.storage.last_start import latest_note

Notes = tuple[str, ...]


@dataclass(frozen=True)
class KafkaAnswer:
    request: UpgradeOptions
    notes: tuple[str, ...]


def ask_for_upgrade(origin: Origin, request: UpgradeOptions) -> KafkaAnswer:
    """Ask the cluster that the user names, if any; propose the last start's cluster."""
    note = latest_note(origin.files) or {}
    servers = (
        noted_options(note, number).get(SERVERS) for number in range(len(origin.checkpoint.sources))
    )
    return ask_kafka(origin.checkpoint, request, next(filter(None, servers), None))


def ask_kafka(
    checkpoint: Checkpoint, request: UpgradeOptions, noted: str | None = None
) -> KafkaAnswer:
    """Return the request, with the new cluster's offsets for --by-time, and notes.

    `noted` is the cluster of the last start. Floodmark proposes it but does not ask it, as anybody
    may have written the note.
    """
    bootstrap = request.kafka
    if bootstrap is None:
        if request.by_time:
            raise WrongUse("--by-time asks a cluster", do="Name it: --kafka HOST:PORT.")
        return KafkaAnswer(request, ())
    if request.by_time:
        # The planned range has the old cluster's offsets, so it cannot run again.
        request = replace(request, drop_in_flight=True)
    course = choose_resume_point(checkpoint, request)
    batch = course.after if course.after is not None else course.in_flight
    assert batch is not None
    sources = [s for s in checkpoint.sources_of(batch) if about(s).has_topics]
    if not sources:
        raise no_kafka()
    cluster = Cluster(bootstrap)
    try:
        if request.by_time:
            moved, notes = _by_time(checkpoint, request, batch, sources, cluster, noted)
            return KafkaAnswer(replace(request, moved_offsets=moved), notes)
        return KafkaAnswer(request, _out_of_reach(request, sources, cluster))
    finally:
        cluster.close()


def _by_time(
    checkpoint: Checkpoint,
    request: UpgradeOptions,
    batch: int,
    sources: list[SourceOffset],
    cluster: Cluster,
    noted: str | None,
) -> tuple[tuple[tuple[str, str], ...], Notes]:
    renamed = dict(request.map_topic)
    if request.old_kafka is None:
        entry = checkpoint.offsets[batch]
        return by_batch_time(entry, batch, sources, renamed, cluster, request, noted)
    left = Cluster(request.old_kafka)
    try:
        return by_record_time(sources, renamed, left, cluster, request)
    finally:
        left.close()


def _topics(renamed: Mapping[str, str], source: SourceOffset) -> dict[str, dict[int, int]]:
    offsets = parse_kafka_offset(source.offset)
    return {renamed.get(topic, topic): partitions for topic, partitions in offsets.items()}


def _out_of_reach(request: UpgradeOptions, sources: list[SourceOffset], cluster: Cluster) -> Notes:
    topics = [_topics(dict(request.map_topic), source) for source in sources]
    return require_reach(reach_of(topics, cluster), request.accept, _sound(cluster))


def ask_reach(sources: Sequence[SourceOffset], bootstrap: str, accept: Sequence[str]) -> Notes:
    """Check that the cluster still has the records after these offsets."""
    kafka = [source for source in sources if about(source).has_topics]
    if not kafka:
        raise no_kafka()
    cluster = Cluster(bootstrap)
    try:
        found = reach_of([_topics({}, source) for source in kafka], cluster)
    finally:
        cluster.close()
    return require_reach(found, accept, _sound(cluster))


def no_kafka() -> WrongUse:
    return WrongUse(
        "--kafka: no source of this stream reads Kafka",
        do="Leave --kafka out; `floodmark inspect CP` shows the sources.",
    )


def _sound(cluster: Cluster) -> str:
    return f"Kafka at {cluster.bootstrap} still has everything that comes next."


def reach_of(sources: Sequence[Topics], cluster: Cluster) -> Reach:
    lost: list[str] = []
    notes: list[str] = []
    records = 0
    for topics in sources:
        found = reach(topics, {topic: cluster.bounds(topic) for topic in topics})
        lost += found.lost
        notes += found.notes
        records += found.records
    return Reach(tuple(lost), tuple(notes), records)


def reach(offsets: Topics, bounds: Mapping[str, Mapping[int, Bounds]]) -> Reach:
    """Return the records after these offsets that the cluster no longer has. Pure."""
    found = tuple(shortfalls(offsets, bounds))
    notes = (
        f"{topic} has new partitions ({', '.join(map(str, partitions))}): Spark reads them from "
        "the start."
        for topic, partitions in added_partitions(offsets, bounds).items()
    )
    return Reach(tuple(one.words for one in found), tuple(notes), sum(one.records for one in found))
