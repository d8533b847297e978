"""Finds the positions of the sources at a time before the checkpoint's oldest log entry.

Kafka has an index of its records by time, a Delta table has the times of its versions, and an
Iceberg table those of its snapshots. Only a stream without state can go back so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.changes.carry.origin import Origin
from floodmark.changes.sources.out_of_reach import Reach
from floodmark.checkpoint.live_answers import SourcePlaces
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.text import moment
from floodmark.connectors.live import PlaceAtTime, SourceToAsk, TimeQuestion, live_of
from floodmark.connectors.source import SourceOffset
from floodmark.errors import NoAnswer, WouldLose
from floodmark.storage.last_start import latest_note
from floodmark.storage.untrusted_places import opener


@dataclass(frozen=True)
class SourcesToAsk:
    """The sources to ask; a note may name a table, but only the user can name a broker."""

    kafka: str | None = None
    table: str | None = None
    storage: Mapping[str, Any] | None = None

    @property
    def places(self) -> SourcePlaces:
        return SourcePlaces(bootstrap_servers=self.kafka, table=self.table)


@dataclass(frozen=True)
class Past:
    offsets: Mapping[str, str]
    """The offset's text for each source."""
    reach: Reach


def offsets_at(origin: Origin, time_ms: int, whom: SourcesToAsk) -> Past:
    """Return the position of every source at that time, as the sources themselves say."""
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


def _place(
    source: SourceOffset, time_ms: int, whom: SourcesToAsk, options: Mapping[str, str], root: str
) -> PlaceAtTime:
    live = live_of(source.kind)
    if live is None or live.place_at is None:
        raise NoAnswer(
            f"--to-time: the log holds no batch of {moment(time_ms)} any more, and source "
            f"{source.id} ({source.kind}) cannot be asked where it stood then",
            "Kafka has an index by time, Delta and Iceberg a history; other sources have neither.",
            "Choose a time that `floodmark batches CP` shows, or give offsets: --to-offsets FILE.",
        )
    opened = opener([root, whom.table], whom.storage)
    return live.place_at(TimeQuestion(SourceToAsk(source, options), time_ms, whom.places, opened))


def noted_options(note: Mapping[str, Any], number: int) -> dict[str, str]:
    sources = note.get("sources")
    if not isinstance(sources, list) or number >= len(sources):
        return {}
    options = sources[number].get("options") if isinstance(sources[number], dict) else None
    if not isinstance(options, dict):
        return {}
    return {str(key).lower(): str(value) for key, value in options.items()}
