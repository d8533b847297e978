"""Where a stream's sources stood at a time that the checkpoint's log holds no more.

Kafka has an index of its records by time, a Delta table the times of its versions. What
was read before the log's oldest entry is found there; only a stream without state can go.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.changes.carry.origin import Origin
from floodmark.changes.sources.kafka_cluster import Cluster
from floodmark.changes.sources.out_of_reach import Reach
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import shown
from floodmark.checkpoint.text import moment
from floodmark.connectors.delta.offset import parse_delta_offset
from floodmark.connectors.kafka.offset import parse_kafka_offset
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset, render_json
from floodmark.errors import BatchPurged, NoAnswer, WouldLose, WrongUse
from floodmark.storage.delta_log import is_delta_table, table_id, version_times
from floodmark.storage.files import Files
from floodmark.storage.noted_places import opener
from floodmark.storage.starts import latest_note

_BEFORE_FIRST_FILE = -1
_IN_THE_LOG = "`floodmark batches CP` shows the times that the log holds."


@dataclass(frozen=True)
class SourcesToAsk:
    """Whom to ask, as the user says. A note may name a table; a broker it can only propose."""

    kafka: str | None = None
    table: str | None = None
    storage: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Past:
    offsets: Mapping[str, str]
    """source → the offset's text."""
    reach: Reach


def offsets_at(origin: Origin, time_ms: int, whom: SourcesToAsk) -> Past:
    """The place of every source at that time, asked of the sources themselves."""
    checkpoint = origin.checkpoint
    _refuse_state(checkpoint, time_ms)
    batch = checkpoint.committed_batch
    assert batch is not None
    note = latest_note(origin.files) or {}
    offsets: dict[str, str] = {}
    lost: list[str] = []
    notes: list[str] = []
    for number, source in enumerate(checkpoint.sources_of(batch)):
        options = noted_options(note, number)
        found = _place(source, time_ms, whom, options, origin.files.root)
        offsets[source.id] = found.text
        lost += found.lost
        notes += found.notes
    return Past(offsets, Reach(tuple(lost), tuple(notes)))


def _refuse_state(checkpoint: Checkpoint, time_ms: int) -> None:
    if not checkpoint.state_operators:
        return
    oldest = min(set(checkpoint.offset_ids) & set(checkpoint.commit_ids), default=None)
    raise WouldLose(
        f"--to-time: the log holds no batch of {moment(time_ms)} any more, and this stream has "
        "state",
        "The state of that time is gone: records that are read again would be counted again.",
        f"Go back to batch {oldest} or later, or begin with an empty state: "
        "floodmark upgrade CP NEW --without-state.",
    )


@dataclass(frozen=True)
class _Place:
    text: str
    lost: Sequence[str] = ()
    notes: Sequence[str] = ()


def _place(
    source: SourceOffset, time_ms: int, whom: SourcesToAsk, options: Mapping[str, str], root: str
) -> _Place:
    if about(source).has_topics:
        return _kafka_place(source, time_ms, whom.kafka, options.get("kafka.bootstrap.servers"))
    if about(source).names_table:
        opened = opener([root, whom.table], whom.storage)
        return _delta_place(source, time_ms, whom.table or options.get("path"), opened)
    raise NoAnswer(
        f"--to-time: the log holds no batch of {moment(time_ms)} any more, and source {source.id} "
        f"({source.kind}) cannot be asked where it stood then",
        "Kafka has an index by time and Delta a history; other sources have neither.",
        "Choose a time that `floodmark batches` shows, or give offsets: --to-offsets FILE.",
    )


def noted_options(note: Mapping[str, Any], number: int) -> dict[str, str]:
    sources = note.get("sources")
    if not isinstance(sources, list) or number >= len(sources):
        return {}
    options = sources[number].get("options") if isinstance(sources[number], dict) else None
    if not isinstance(options, dict):
        return {}
    return {str(key).lower(): str(value) for key, value in options.items()}


def _kafka_place(
    source: SourceOffset, time_ms: int, bootstrap: str | None, noted: str | None
) -> _Place:
    if bootstrap is None:
        raise BatchPurged(
            f"no batch of {moment(time_ms)} is logged any more, and Kafka was not asked",
            "Nothing says where it is: this stream was not started by `floodmark run`."
            if noted is None
            else "Only a note in the checkpoint says where it is, and anybody may have written it.",
            "Have it asked for that time: --kafka "
            f"{'HOST:PORT' if noted is None else shlex.quote(shown(noted))}. {_IN_THE_LOG}",
        )
    now = parse_kafka_offset(source.offset)
    cluster = Cluster(bootstrap)
    lost, notes = [], []
    place: dict[str, dict[str, int]] = {}
    try:
        for topic, partitions in now.items():
            then = cluster.at_time(topic, time_ms)
            oldest = {number: one.earliest for number, one in cluster.bounds(topic).items()}
            place[topic] = {}
            for partition, at in sorted(partitions.items()):
                if partition not in then:
                    lost.append(f"{topic} partition {partition} is gone")
                # Records carry the time of whoever made them: never ahead of what was read.
                found = min(at, then.get(partition, at))
                place[topic][str(partition)] = found
                if 0 < oldest.get(partition, 0) == found:
                    notes.append(
                        f"{topic} partition {partition} has nothing before offset {found}: "
                        "records of that time may be gone already."
                    )
    finally:
        cluster.close()
    where = "; ".join(f"{topic} {render_json(at)}" for topic, at in place.items())
    notes.insert(0, f"Kafka at {bootstrap} stood there at {moment(time_ms)}: {where}.")
    text = source.text if place == source.offset else render_json(place)
    return _Place(text or "", lost, notes)


def _delta_place(
    source: SourceOffset, time_ms: int, table: str | None, opened: Callable[[str], Files]
) -> _Place:
    if table is None:
        raise BatchPurged(
            f"no batch of {moment(time_ms)} is logged any more, and the Delta table was not asked",
            "Nothing says where it is: this stream was not started by `floodmark run`.",
            f"Have its history asked for that time: --table PATH. {_IN_THE_LOG}",
        )
    now = parse_delta_offset(source.offset)
    if now.is_starting_version:
        raise WouldLose(
            f"--to-time: source {source.id} is still inside the first snapshot of {table}",
            "Its files have no order by time, so no place in it is that of a time; any later "
            "version would leave out what of the snapshot is not read yet.",
            "Choose a batch that is logged: --to-batch N. `floodmark batches CP` lists them.",
        )
    times = version_times(_table(opened(table), table, now.reservoir_id))
    oldest = min(times)
    later = [version for version, at_ms in sorted(times.items()) if at_ms >= time_ms]
    version = later[0] if later else max(times) + 1
    if version >= now.reservoir_version:
        return _Place(source.text or "", notes=(f"{table} was not read further than now then.",))
    lost = []
    if version == oldest > 0 and times[oldest] > time_ms:
        lost.append(
            f"{table}: versions before {oldest} ({moment(times[oldest])}) are cleaned up, and "
            f"{oldest} of them may hold records of that time"
        )
    place = {
        "sourceVersion": 1,
        "reservoirId": now.reservoir_id,
        "reservoirVersion": version,
        "index": _BEFORE_FIRST_FILE,
        "isStartingVersion": False,
    }
    note = f"{table} is read from version {version} on, the first since {moment(time_ms)}."
    return _Place(render_json(place), lost, (note,))


def _table(files: Files, location: str, wanted: str) -> Files:
    if not is_delta_table(files):
        raise NoAnswer(
            f"{location} is not a Delta table: it has no log",
            do="Name the folder that the source reads: --table PATH.",
        )
    found = table_id(files)
    if found is not None and found != wanted:
        raise WrongUse(
            f"{location} is another table than the one that the stream reads",
            f"Its id is {found}, the checkpoint's source has {wanted}.",
            "Name the folder that the source reads: --table PATH.",
        )
    return files
